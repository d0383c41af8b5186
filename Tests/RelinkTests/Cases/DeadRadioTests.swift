import BluetoothWire
import Foundation
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
        scene.executor.advance(by: .milliseconds(100))
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

  /// The public functions of the product that are `async`, as the sources declare them, each with its documentation.
  private func declaredCalls() throws -> [(name: String, documentation: String)] {
    let root = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../../Sources/Relink").standardizedFileURL
    let files = FileManager.default.enumerator(at: root, includingPropertiesForKeys: nil)
    var found: [(String, String)] = []
    while let file = files?.nextObject() as? URL {
      guard file.pathExtension == "swift" else { continue }
      let stem = file.deletingPathExtension().lastPathComponent
      let text = try String(contentsOf: file, encoding: .utf8)
      var documentation = ""
      var declaration = ""
      for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
        let words = line.drop { $0 == " " }
        if words.hasPrefix("///") {
          documentation += words.dropFirst(3)
        } else if !declaration.isEmpty || words.contains("public ") {
          declaration += words + " "
          // It goes on over the next lines until its parameters are closed.
          guard Self.depth(of: declaration) == 0 else { continue }
          if let name = Self.asyncName(in: declaration) { found.append(("\(stem).\(name)", documentation)) }
          declaration = ""
          documentation = ""
        } else if !words.hasPrefix("@") {
          documentation = ""
        }
      }
    }
    return found
  }

  private static func depth(of text: String) -> Int {
    text.reduce(0) { $0 + ($1 == "(" ? 1 : $1 == ")" ? -1 : 0) }
  }

  /// The name in a declaration of a function or property that is `async` itself, not only something that it takes.
  private static func asyncName(in declaration: String) -> String? {
    if declaration.contains("get async") {
      return declaration.components(separatedBy: "var ").last.map { String($0.prefix { $0.isLetter }) }
    }
    guard let name = declaration.components(separatedBy: "func ").dropFirst().first else { return nil }
    var depth = 0
    for index in name.indices {
      if name[index] == "(" { depth += 1 }
      guard name[index] == ")" else { continue }
      depth -= 1
      guard depth == 0 else { continue }
      return name[name.index(after: index)...].hasPrefix(" async") ? String(name.prefix { $0.isLetter }) : nil
    }
    return nil
  }

  @Test("no public call is missing here, and each states its time")
  func everyPublicAsyncCallIsListedAndStatesItsTime() throws {
    let declared = try declaredCalls()
    let listed = Set(PublicCall.all.map(\.declaration) + PublicCall.scoped.map(\.declaration))
    #expect(Set(declared.map(\.name)) == listed)
    // `ValueStream.next` is there in two forms, all others in one.
    #expect(declared.count == listed.count + 1)
    let statements = [
      "ends within", "ends with the link", "without waiting", "without a bound", "with the link",
      "as long as",
    ]
    for (name, documentation) in declared {
      #expect(
        statements.contains { documentation.lowercased().contains($0) }, "\(name) states no longest time")
    }
  }
}
