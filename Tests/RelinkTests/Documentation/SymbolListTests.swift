import Foundation
import Testing

/// The pages of the modules name every public type.
@Suite struct SymbolListTests {
  private static let root = URL(filePath: #filePath).deletingLastPathComponent()
    .appending(path: "../../..").standardizedFileURL

  /// Each page, and the targets whose public types stand on it.
  static let pages = [
    ("Relink", ["Relink", "RelinkCore"]), ("RelinkSQLite", ["RelinkSQLite"]),
    ("RelinkBlueZ", ["RelinkBlueZ"]),
    ("RelinkTesting", ["RelinkTesting"]), ("BluetoothWire", ["BluetoothWire"]),
  ]

  @Test("each public type stands in the list of its module's page", arguments: pages)
  func everyPublicTypeIsListed(_ page: String, _ targets: [String]) throws {
    let file = Self.root.appending(path: "Docs.docc/\(page).md")
    let parts = try String(contentsOf: file, encoding: .utf8).components(separatedBy: "## Topics")
    try #require(parts.count == 2, "\(page).md has no list")
    let listed = Set(
      parts[1].split(separator: "\n").filter { $0.hasPrefix("- ``") }.map { $0.dropFirst(4).dropLast(2) })
    let declared = try targets.flatMap(publicTypes)
    #expect(declared.filter { !listed.contains(Substring($0)) } == [], "to be listed in Docs.docc/\(page).md")
    #expect(declared.count > 3)
  }

  /// The public types of a target that stand at the margin: those within others are shown with them.
  private func publicTypes(of target: String) throws -> [String] {
    let folder = Self.root.appending(path: "Sources/\(target)")
    let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
    var found: [String] = []
    while let file = files?.nextObject() as? URL {
      guard file.pathExtension == "swift" else { continue }
      for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
        let words = line.split(separator: " ")
        guard words.first == "public", let kind = words.firstIndex(where: Self.kinds.contains) else {
          continue
        }
        guard line.first != " ", kind + 1 < words.count, kind <= 2 else { continue }
        found.append(String(words[kind + 1].prefix { $0.isLetter || $0.isNumber || $0 == "_" }))
      }
    }
    return found
  }

  private static let kinds: Set<Substring> = ["struct", "class", "enum", "protocol", "actor"]
}
