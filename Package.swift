// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

let package = Package(
  name: "relink",
  platforms: [.macOS("15.4"), .iOS("18.4"), .tvOS("18.4"), .watchOS("11.4"), .visionOS("2.4")],
  products: [
    .library(name: "Relink", targets: ["Relink"]),
    .library(name: "RelinkBlueZ", targets: ["RelinkBlueZ"]),
    .library(name: "RelinkSQLite", targets: ["RelinkSQLite"]),
    .library(name: "RelinkTesting", targets: ["RelinkTesting"]),
    .executable(name: "relink", targets: ["relink-tool"]),
  ],
  targets: [
    .target(name: "CThreadSanitizer"),
    .target(name: "CBlueZ", linkerSettings: [.linkedLibrary("bluetooth", .when(platforms: [.linux]))]),

    .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),

    .target(name: "BluetoothWire", swiftSettings: settings),
    .target(name: "RelinkCore", dependencies: ["BluetoothWire"], swiftSettings: settings),
    .target(name: "Relink", dependencies: ["RelinkCore", "CThreadSanitizer"], swiftSettings: settings),
    .target(name: "RelinkTesting", dependencies: ["Relink", "BluetoothWire"], swiftSettings: settings),
    .target(
      name: "RelinkBlueZ", dependencies: ["Relink", "BluetoothWire", "CBlueZ"], swiftSettings: settings),
    .target(name: "RelinkSQLite", dependencies: ["Relink", "CSQLite"], swiftSettings: settings),
    .executableTarget(
      name: "relink-tool", dependencies: ["Relink", "RelinkBlueZ", "RelinkSQLite", "RelinkTesting"],
      path: "Sources/relink", swiftSettings: settings),

    .target(name: "CBenchmark", dependencies: ["CSQLite"], path: "Benchmarks/CBenchmark"),
    .executableTarget(
      name: "relink-bench",
      dependencies: ["Relink", "RelinkBlueZ", "RelinkSQLite", "RelinkTesting", "CBenchmark"],
      path: "Benchmarks/relink-bench", swiftSettings: settings),
    .executableTarget(
      name: "relink-lab",
      dependencies: ["Relink", "RelinkBlueZ", "RelinkCrash", "RelinkSQLite", "RelinkTesting", "CBlueZ"],
      path: "Tests/Lab/relink-lab", swiftSettings: settings),

    .target(
      name: "RelinkSimulation", dependencies: ["Relink", "RelinkTesting"],
      path: "Tests/Simulation/RelinkSimulation", swiftSettings: settings),
    .executableTarget(
      name: "relink-simulate", dependencies: ["RelinkSimulation"],
      path: "Tests/Simulation/relink-simulate", swiftSettings: settings),

    .target(
      name: "RelinkCrash", dependencies: ["Relink", "RelinkSQLite", "RelinkTesting"],
      path: "Tests/Crash/RelinkCrash", swiftSettings: settings),
    .executableTarget(
      name: "relink-crash",
      dependencies: ["Relink", "RelinkBlueZ", "RelinkCrash", "RelinkSQLite", "RelinkTesting"],
      path: "Tests/Crash/relink-crash", swiftSettings: settings),

    .testTarget(name: "BluetoothWireTests", dependencies: ["BluetoothWire"], swiftSettings: settings),
    .testTarget(name: "RelinkCoreTests", dependencies: ["RelinkCore"], swiftSettings: settings),
    .testTarget(
      name: "RelinkTests", dependencies: ["Relink", "RelinkTesting", "RelinkSimulation"],
      swiftSettings: settings),
    .testTarget(name: "RelinkTestingTests", dependencies: ["RelinkTesting"], swiftSettings: settings),
    .testTarget(
      name: "RelinkBlueZTests", dependencies: ["Relink", "RelinkBlueZ", "RelinkTesting"],
      swiftSettings: settings),
    .testTarget(
      name: "RelinkToolTests", dependencies: ["relink-tool", "Relink", "RelinkSQLite", "RelinkTesting"],
      swiftSettings: settings),
    .target(
      name: "CFaultVFS", dependencies: ["CSQLite"], path: "Tests/Storage/CFaultVFS"),
    .testTarget(
      name: "RelinkSQLiteTests",
      dependencies: ["Relink", "RelinkSQLite", "RelinkTesting", "CSQLite", "CFaultVFS"],
      swiftSettings: settings),
  ],
  swiftLanguageModes: [.v6]
)
