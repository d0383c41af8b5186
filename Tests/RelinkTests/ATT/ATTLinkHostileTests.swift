import BluetoothWire
import Relink
import RelinkTesting
import Testing

/// Devices, channels and sessions that do anything at any time.
@Suite struct ATTLinkHostileTests {
  private static let hash = [UInt8](1...16)

  /// Ten thousand links: no trap, nothing inside a call, each accepted request with one end, nothing after the last word.
  @Test func everyAcceptedRequestHasOneEndWhateverTheDeviceSays() {
    let device = ScriptedDevice.standard(hash: Self.hash)
    let tables = ATTBench(to: device).tables
    for seed in 0..<10_000 {
      var run = HostileRun(seed: UInt64(seed), device: device, tables: tables)
      run.play(steps: 40)
      let problem = run.problem
      #expect(problem == nil, "seed \(seed)")
      guard problem == nil else { return }
    }
  }

  /// Each PDU kind with no request outstanding: answered, delivered, swallowed, or the end of the link.
  @Test(arguments: UInt8.min...UInt8.max) func unsolicitedPDUsOfEachOpcode(_ opcode: UInt8) {
    let device = ScriptedDevice.standard(hash: Self.hash)
    let tables = ATTBench(to: device).tables
    for length in [0, 1, 2, 3, 4, 5, 6, 8, 12, 22] {
      let bench = ATTBench(to: device, tables: tables)
      bench.receive([opcode] + [UInt8](repeating: 0x10, count: length))
      let sent = bench.channel.takeSent()
      switch ATTOpcode(rawValue: opcode).kind {
      case .response:
        #expect(bench.channel.closes == 1)
        #expect(sent == [])
      case .request, .unknown:
        #expect(bench.channel.closes == 0)
        #expect(sent.count == 1 && sent[0][..<4] == [0x01, opcode, 0, 0])
      case .indication:
        #expect(sent == [[0x1E]])
      default:
        #expect(bench.channel.closes == 0)
        #expect(sent == [])
      }
      #expect(bench.recorder.take().allSatisfy { if case .value = $0 { true } else { false } })
    }
  }
}

/// One link with a random device, a random channel and a random session.
private struct HostileRun {
  private var random: SeededNumbers
  private var bench: ATTBench
  private let device: ScriptedDevice
  private var open: Set<RequestID> = []
  private var mayBeUndone: Set<RequestID> = []
  private var hasEnded = false
  private var isClosedHere = false
  private(set) var problem: String?

  init(seed: UInt64, device: ScriptedDevice, tables: AttributeTableMemory) {
    random = SeededNumbers(state: seed)
    self.device = device
    bench = ATTBench(to: device, tables: tables)
  }

  mutating func play(steps: Int) {
    for _ in 0..<steps where problem == nil {
      switch random.below(20) {
      case 0...4: request()
      case 5...9: receiveAnswer()
      case 10...12: receiveAnything()
      case 13: bench.channel.answerSends(with: .later)
      case 14: bench.becomeWritable()
      case 15: bench.channel.answerNextSends(with: [.failed(107)])
      case 16: bench.abandon(RequestID(rawValue: UInt64(random.below(20))))
      case 17: bench.executor.advance(by: .milliseconds(random.below(9000)))
      case 18: bench.executor.run()
      default:
        if random.below(10) == 0 {
          isClosedHere = true
          bench.close()
        }
      }
      check()
    }
    bench.lose()
    check()
    if !hasEnded { problem = problem ?? "no last word" }
    if bench.executor.timerCount != 0 { problem = problem ?? "a timer was left" }
  }

  private mutating func request() {
    let value = [UInt8](repeating: 1, count: random.below(50))
    let names: [Characteristic] = [.level, .beat, .location, Characteristic(.serviceChanged)]
    let name = names[random.below(names.count)]
    let request: GATTRequest =
      switch random.below(8) {
      case 0: .read(name)
      case 1: .write(name, value)
      case 2: .writeLong(name, value)
      case 3: .writeWithoutResponse(name, value)
      case 4: .setNotifying(name, true)
      case 5: .discover
      case 6: .writeReliably([ReliableWrite(name, value), ReliableWrite(.level, value)])
      default: .exchangeMTU
      }
    guard bench.perform(request) == .accepted else { return }
    if hasEnded || isClosedHere { problem = "accepted after the end" }
    open.insert(bench.latest)
    switch request {
    case .writeLong, .writeReliably, .exchangeMTU: mayBeUndone.insert(bench.latest)
    default: break
    }
  }

  /// Answers what was sent last, as a correct device would, most of the time.
  private mutating func receiveAnswer() {
    guard
      let request = bench.channel.takeSent().last(where: { $0 != [0x1E] && $0[0] != 0x52 && $0[0] != 0x01 })
    else { return }
    switch try? ATTPDU(decoding: request) {
    case .prepareWriteRequest(let handle, let offset, let value):
      bench.receive(.prepareWriteResponse(handle: handle, offset: offset, value: value))
    case .executeWriteRequest: bench.receive(.executeWriteResponse)
    case .readRequest, .readBlobRequest:
      bench.receive([request[0] + 1] + [UInt8](repeating: 5, count: random.below(3) == 0 ? 22 : 4))
    case .exchangeMTURequest: bench.receive(.exchangeMTUResponse(mtu: UInt16(random.below(100))))
    default: bench.receive(device.answer(request))
    }
  }

  private mutating func receiveAnything() {
    let opcodes: [UInt8] = [0x1B, 0x1D, 0x23, 0x1E, 0x02, 0x0A, 0x12, 0x3F, 0x7F, 0x01, 0x0B, 0x13, 0x09]
    // Responses end the link, so most of what comes is something else.
    var bytes = [opcodes[random.below(random.below(8) == 0 ? opcodes.count : 9)]]
    let handles: [UInt8] = [0x03, 0x10, 0x20, 0x77]
    bytes += [handles[random.below(handles.count)], 0]
    for _ in 0..<random.below(8) { bytes.append(UInt8(random.below(256))) }
    bench.receive(Array(bytes.prefix(random.below(12))))
  }

  private mutating func check() {
    for delivery in bench.recorder.take() {
      if hasEnded { problem = "\(delivery) after the last word" }
      switch delivery {
      case .answered(let id, _):
        if isClosedHere { problem = "an answer after close" }
        if open.remove(id) == nil { problem = "second answer to \(id)" }
      case .closed(_, let inDoubt):
        hasEnded = true
        if !open.isSuperset(of: inDoubt) { problem = "in doubt, and not open: \(inDoubt)" }
        // What is open and not in doubt is proven not to have been carried out: of these, long writes, and an
        // exchange whose answer was known.
        for id in open.subtracting(inDoubt) where !mayBeUndone.contains(id) && !isClosedHere {
          problem = "\(id) has no end"
        }
      case .value, .tableChanged, .writable, .needs, .secured, .notSecured:
        if isClosedHere { problem = "\(delivery) after close" }
      case .wrong(let what): problem = what
      }
    }
  }
}

/// Numbers that are the same for the same seed (SplitMix64).
private struct SeededNumbers {
  var state: UInt64

  mutating func below(_ limit: Int) -> Int {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return Int((mixed ^ (mixed >> 31)) % UInt64(max(limit, 1)))
  }
}
