import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// Every public call ends within the time that its documentation states, whatever the radio does not do.
@Suite struct DeadRadioTests {
  /// The ways in which a radio is dead.
  enum DeadRadio: CaseIterable {
    case absentDevice, hungDial, refusedDials, adapterOff, adapterMissing, linkThatNobodyReports
    case silentPeripheral, peripheralSilentWhenReady, deadLink, fullChannel

    /// Brings the scene there; some of them need a session that was ready.
    func prepare(_ scene: Scene, _ peripheral: VirtualPeripheral) throws {
      scene.radio.add(peripheral, as: try deviceID(2))
      switch self {
      case .absentDevice: for number in 1...2 { scene.radio.carryAway(try deviceID(number)) }
      case .hungDial: for number in 1...2 { scene.radio.setDialBehavior(.hang, of: try deviceID(number)) }
      case .refusedDials:
        for number in 1...2 { scene.radio.setDialBehavior(.refuse(after: .zero), of: try deviceID(number)) }
      case .adapterOff: scene.radio.setAdapter(.off)
      case .adapterMissing: scene.radio.setAdapter(.missing)
      case .linkThatNobodyReports: scene.radio.hold([.linkUp])
      case .silentPeripheral: peripheral.react(to: .anything, with: .swallow)
      case .peripheralSilentWhenReady:
        try scene.connect()
        peripheral.react(to: .anything, with: .swallow)
      case .deadLink:
        try scene.connect()
        scene.radio.silence(scene.device)
        scene.radio.setDialBehavior(.hang, of: try deviceID(2))
      case .fullChannel:
        try scene.connect()
        scene.radio.block(scene.device)
        scene.radio.setDialBehavior(.hang, of: try deviceID(2))
      }
    }
  }

  struct Cell: Sendable, CustomTestStringConvertible {
    var call: PublicCall
    var radio: DeadRadio
    var testDescription: String { "\(call), \(radio)" }
    static let all = (PublicCall.all + PublicCall.iterations).flatMap { call in
      DeadRadio.allCases.map { Cell(call: call, radio: $0) }
    }
  }

  @Test("each call ends in its time", arguments: Cell.all)
  func eachCallEndsWithinItsStatedTime(_ cell: Cell) throws {
    let peripheral = VirtualPeripheral.twoValues()
    try Scene.play(peripheral) { scene in
      try cell.radio.prepare(scene, peripheral)
      let ended = Locked<MonotonicInstant?>(nil)
      let start = scene.executor.now
      let task = scene.executor.spawn("\(cell.call)") {
        defer { ended.withLock { $0 = scene.executor.now } }
        try await cell.call.make(scene)
      }
      if let limit = cell.call.limit {
        scene.executor.advance(by: limit)
        #expect(task.hasEnded)
        let end = ended.withLock { $0 }
        #expect(end.map { start.duration(to: $0) <= limit } == true)
      } else {
        scene.executor.advance(by: .seconds(3600))
      }
      task.cancel()
      scene.executor.run()
      #expect(task.hasEnded)
      scene.radio.stopHolding()
    }
  }

  @Test("each call ends when it is cancelled", arguments: Cell.all)
  func eachCallEndsSoonAfterItIsCancelled(_ cell: Cell) throws {
    for wait in [Duration.zero, .milliseconds(1), .seconds(1), .milliseconds(2999)] {
      let peripheral = VirtualPeripheral.twoValues()
      try Scene.play(peripheral) { scene in
        try cell.radio.prepare(scene, peripheral)
        let task = scene.executor.spawn("\(cell.call)") { try await cell.call.make(scene) }
        if wait > .zero { scene.executor.advance(by: wait) }
        task.cancel()
        scene.executor.advance(by: cell.call.timeAfterCancelling)
        #expect(task.hasEnded, "cancelled after \(wait)")
        scene.radio.stopHolding()
      }
    }
  }

  /// What dies under a setup closure.
  enum DeadLink: CaseIterable {
    case silentPeripheral, deadLink, fullChannel, lost

    /// The longest time of a call on the link: 30 s for a request without an answer and 2 s until its link is gone; a
    /// request that cannot even leave has the time of the whole preparation, and those 2 s.
    func limit(_ call: PublicCall.Scoped) -> Duration {
      switch self {
      case .silentPeripheral, .deadLink: .seconds(32)
      case .fullChannel: .seconds(62)
      case .lost: .zero
      }
    }
  }

  struct ScopedCell: Sendable, CustomTestStringConvertible {
    var call: PublicCall.Scoped
    var link: DeadLink
    var testDescription: String { "\(call), \(link)" }
    static let all = PublicCall.scoped.flatMap { call in
      DeadLink.allCases.map { ScopedCell(call: call, link: $0) }
    }
  }

  @Test("each call on a link ends with the link", arguments: ScopedCell.all)
  func eachCallOnALinkEndsWithTheLink(_ cell: ScopedCell) throws {
    let peripheral = VirtualPeripheral.twoValues()
    let stage = Locked<(radio: VirtualRadio, device: DeviceID, executor: ManualExecutor)?>(nil)
    let spans = Locked<[Duration]>([])
    let codes = Locked<[RelinkError.Code?]>([])
    var configuration = Configuration(seed: 1)
    configuration.setup = { scope in
      guard let stage = stage.withLock({ $0 }) else { return .unknown }
      switch cell.link {
      case .silentPeripheral: peripheral.react(to: .anything, with: .swallow)
      case .deadLink: stage.radio.silence(stage.device)
      case .fullChannel: stage.radio.block(stage.device)
      case .lost: stage.radio.lose(stage.device, .connectionTimeout)
      }
      let start = stage.executor.now
      do {
        try await cell.call.make(scope)
        codes.withLock { $0.append(nil) }
      } catch {
        codes.withLock { $0.append((error as? RelinkError)?.code) }
      }
      spans.withLock { $0.append(start.duration(to: stage.executor.now)) }
      throw CancellationError()
    }
    try Scene.play(peripheral, configuration) { scene in
      stage.withLock { $0 = (scene.radio, scene.device, scene.executor) }
      let connect = scene.spawn("connect") { try await $0.connect(within: .seconds(61)) }
      scene.executor.advance(by: .seconds(70))
      #expect(connect.relinkError?.code == .deadlineExceeded)
      let first = try #require(spans.withLock { $0.first })
      #expect(first <= cell.link.limit(cell.call))
      let isTaken = cell.call.declaration.hasSuffix("writeWithoutResponse") && cell.link != .fullChannel
      if !isTaken {
        let code = codes.withLock { $0.first } ?? nil
        #expect(code == (cell.link == .fullChannel ? .linkLost : .indeterminate))
      }
      stage.withLock { $0 = nil }
    }
  }

  // MARK: The list

  /// The modules of the product in which a call may wait for a radio.
  private static let radioModules = ["BluetoothWire", "RelinkCore", "Relink", "RelinkBlueZ"]

  @Test("no public call is missing here, and each states its time")
  func everyPublicAsyncCallIsListedAndStatesItsTime() throws {
    let declared = try Self.radioModules.flatMap(PublicDeclaration.all)
    let listed = Set(PublicCall.all.map(\.declaration) + PublicCall.scoped.map(\.declaration))
    #expect(Set(declared.map(\.name)) == listed)
    // `ValueStream.next` is there in two forms, all others in one.
    #expect(declared.count == listed.count + 1)
    let apart = try PublicCall.apart.keys.flatMap(PublicDeclaration.all)
    let statements = [
      "ends within", "comes within", "ends with the link", "without waiting", "without a bound",
      "with the link", "as long as",
    ]
    for call in declared + apart {
      #expect(
        statements.contains { call.documentation.lowercased().contains($0) },
        "\(call.name) states no longest time")
    }
  }

  @Test("a public call that is not made here waits for no radio, and the reason is given")
  func everyOtherPublicAsyncCallIsListedWithItsReason() throws {
    for (module, reasons) in PublicCall.apart {
      #expect(Set(try PublicDeclaration.all(in: module).map(\.name)) == Set(reasons.keys))
    }
    let files = Set(try PublicDeclaration.all(in: "RelinkTesting").map { $0.name.prefix { $0 != "." } })
    #expect(files.map(String.init).sorted() == PublicCall.ofTests.keys.sorted())
  }

  @Test func theScanFindsEachFormOfACallAndNothingElse() {
    let text = """
      public struct Sample {
        /// In one line.
        public func one(_ body: @Sendable () async -> Int) async {}
        /// Over lines.
        @discardableResult
        public nonisolated func two(
          _ number: Int
        ) async throws -> Int {
        /// With its effect on a line of its own.
        public static func three<Value>(_ value: Value)
          async throws -> Value
        where Value: Sendable {
        /// A property.
        public var four: Int { get async { 4 } }
        /// A property over lines.
        public var five: Int {
          // Why it waits.
          get async {
        /// An initialiser.
        public convenience init?(six: Int) async throws {
        /// None: it only takes what is.
        public func seven(_ body: @Sendable () async -> Int) -> Int {
        /// None: not public.
        package func eight() async {}
        /// None: waits for nothing.
        public var nine: Int {
          get {
        public typealias Ten = @Sendable () async -> Int
        public let eleven: @Sendable () async -> Int
      }
      """
    let found = PublicDeclaration.all(in: text, of: "Sample")
    #expect(
      found == [
        PublicDeclaration(name: "Sample.one", documentation: " In one line."),
        PublicDeclaration(name: "Sample.two", documentation: " Over lines."),
        PublicDeclaration(name: "Sample.three", documentation: " With its effect on a line of its own."),
        PublicDeclaration(name: "Sample.four", documentation: " A property."),
        PublicDeclaration(name: "Sample.five", documentation: " A property over lines."),
        PublicDeclaration(name: "Sample.init", documentation: " An initialiser."),
      ])
  }
}
