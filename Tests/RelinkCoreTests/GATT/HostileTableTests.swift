import BluetoothWire
import RelinkCore
import Testing

/// Answers to discovery that a correct server never gives.
@Suite struct HostileTableTests {
  private static let hashMissing = ATTPDU.errorResponse(
    request: .readByTypeRequest, handle: 1, code: .attributeNotFound)
  private static let noMore = ATTPDU.errorResponse(
    request: .readByGroupTypeRequest, handle: 1, code: .attributeNotFound)
  private static let batteryValue: [UInt8] = [0x0F, 0x18]

  /// A procedure that has read the answers given, and what it said to the last.
  private func after(_ answers: [ATTPDU]) -> ProcedureAction {
    var procedure = DiscoveryProcedure(known: nil)
    var action = ProcedureAction.request(procedure.first)
    for answer in [Self.hashMissing] + answers { action = procedure.received(answer) }
    return action
  }

  @Test(arguments: [
    [ATTGroupValue(start: 0, end: 5, value: batteryValue)],
    [ATTGroupValue(start: 5, end: 4, value: batteryValue)],
    [
      ATTGroupValue(start: 1, end: 5, value: batteryValue),
      ATTGroupValue(start: 5, end: 9, value: batteryValue),
    ],
    [
      ATTGroupValue(start: 1, end: 0xFFFF, value: batteryValue),
      ATTGroupValue(start: 2, end: 3, value: batteryValue),
    ],
    [
      ATTGroupValue(start: 9, end: 9, value: batteryValue),
      ATTGroupValue(start: 1, end: 3, value: batteryValue),
    ],
  ])
  func servicesOutOfOrder(_ groups: [ATTGroupValue]) {
    let last = groups[groups.count - 1].start
    #expect(
      after([.readByGroupTypeResponse(groups)])
        == .failed(.malformedAnswer, .handleOutOfOrder(last, in: .readByGroupTypeResponse)))
  }

  @Test func servicesBelowTheRangeThatWasAskedFor() {
    let first = ATTPDU.readByGroupTypeResponse([ATTGroupValue(start: 1, end: 9, value: Self.batteryValue)])
    #expect(
      after([first, first])
        == .failed(.malformedAnswer, .handleOutOfOrder(1, in: .readByGroupTypeResponse)))
  }

  @Test(arguments: [0, 1, 3, 4, 15, 17]) func servicesWithoutAUUID(_ length: Int) {
    let group = ATTGroupValue(start: 1, end: 9, value: [UInt8](repeating: 1, count: length))
    #expect(
      after([.readByGroupTypeResponse([group])])
        == .failed(.malformedAnswer, .malformedDeclaration(handle: 1)))
  }

  @Test(arguments: [
    ATTPDU.readByGroupTypeResponse([]), .readResponse(value: [1]), .readByTypeResponse([]), .writeResponse,
  ])
  func emptyOrForeignAnswersForServices(_ pdu: ATTPDU) {
    guard case .failed(.malformedAnswer, _) = after([pdu]) else {
      Issue.record("\(pdu) was taken")
      return
    }
  }

  private static let service = ATTPDU.readByGroupTypeResponse([
    ATTGroupValue(start: 1, end: 0x20, value: batteryValue)
  ])

  private static func declaration(_ handle: UInt16, value: UInt16, length: Int = 5) -> ATTHandleValue {
    let bytes: [UInt8] = [0x02, UInt8(value & 0xFF), UInt8(value >> 8), 0x19, 0x2A]
    return ATTHandleValue(
      handle: handle, value: Array((bytes + [UInt8](repeating: 0, count: 32)).prefix(length)))
  }

  @Test(
    arguments: [
      ([declaration(0, value: 3)], 0), ([declaration(0x21, value: 0x22)], 0x21),
      ([declaration(2, value: 3), declaration(2, value: 3)], 2),
      ([declaration(4, value: 5), declaration(2, value: 3)], 2),
    ] as [([ATTHandleValue], UInt16)])
  func characteristicsOutOfOrder(_ values: [ATTHandleValue], _ handle: UInt16) {
    #expect(
      after([Self.service, Self.noMore, .readByTypeResponse(values)])
        == .failed(.malformedAnswer, .handleOutOfOrder(handle, in: .readByTypeResponse)))
  }

  @Test(arguments: [
    [declaration(2, value: 2)], [declaration(2, value: 1)], [declaration(2, value: 0x21)],
    [declaration(2, value: 0)], [declaration(2, value: 3, length: 4)], [declaration(2, value: 3, length: 6)],
    [declaration(2, value: 3, length: 18)], [declaration(2, value: 3, length: 20)],
    [declaration(2, value: 3, length: 0)], [declaration(1, value: 4), declaration(2, value: 3)],
  ])
  func characteristicsThatAreNone(_ values: [ATTHandleValue]) {
    // A declaration at the handle of the service is in no service, and so passed over.
    let last = values[values.count - 1].handle
    let action = after([Self.service, Self.noMore, .readByTypeResponse(values)])
    if values.count == 2 {
      #expect(action == .request(.readByTypeRequest(start: 3, end: 0x20, type: .characteristic)))
    } else {
      #expect(action == .failed(.malformedAnswer, .malformedDeclaration(handle: last)))
    }
  }

  @Test func valueBehindTheNextDeclaration() {
    let values = [Self.declaration(2, value: 8), Self.declaration(5, value: 6)]
    #expect(
      after([Self.service, Self.noMore, .readByTypeResponse(values)])
        == .failed(.malformedAnswer, .malformedDeclaration(handle: 5)))
  }

  @Test(
    arguments: [
      ([], 0), ([3], 3), ([0x21], 0x21), ([4, 4], 4), ([5, 4], 4), ([4, 0], 0),
    ] as [([UInt16], UInt16)])
  func descriptorsOutOfOrder(_ handles: [UInt16], _ wrong: UInt16) {
    let items = handles.map { ATTHandleUUID(handle: $0, uuid: .clientCharacteristicConfiguration) }
    let answers = [
      Self.service, Self.noMore, .readByTypeResponse([Self.declaration(2, value: 3)]), Self.hashMissing,
      .findInformationResponse(items),
    ]
    #expect(
      after(answers)
        == .failed(.malformedAnswer, .handleOutOfOrder(wrong, in: .findInformationResponse)))
  }

  /// One service per answer, without end: the table has a limit, and the requests one with it.
  @Test func endlessServicesAreAViolation() {
    var procedure = DiscoveryProcedure(known: nil)
    var action = procedure.received(Self.hashMissing)
    var requests = 0
    while case .request(.readByGroupTypeRequest(let start, _, _)) = action {
      requests += 1
      let group = ATTGroupValue(start: start, end: start, value: Self.batteryValue)
      action = procedure.received(.readByGroupTypeResponse([group]))
    }
    #expect(requests == DiscoveryProcedure.attributeLimit + 1)
    #expect(action == .failed(.malformedAnswer, .tableTooLarge(limit: DiscoveryProcedure.attributeLimit)))
  }

  @Test func endlessDescriptorsAreAViolation() {
    var procedure = DiscoveryProcedure(known: nil)
    _ = procedure.received(Self.hashMissing)
    _ = procedure.received(
      .readByGroupTypeResponse([ATTGroupValue(start: 1, end: 0xFFFF, value: Self.batteryValue)]))
    _ = procedure.received(.readByTypeResponse([Self.declaration(2, value: 3)]))
    var action = procedure.received(Self.hashMissing)
    var requests = 0
    while case .request(.findInformationRequest(let start, _)) = action {
      requests += 1
      let item = ATTHandleUUID(handle: start, uuid: .characteristicUserDescription)
      action = procedure.received(.findInformationResponse([item]))
    }
    #expect(requests == DiscoveryProcedure.attributeLimit - 1)
    #expect(action == .failed(.malformedAnswer, .tableTooLarge(limit: DiscoveryProcedure.attributeLimit)))
  }

  /// Ten thousand devices that answer discovery with random lists: each ends, within the bound, and without a trap.
  @Test func randomTables() {
    for seed in 0..<10_000 {
      var random = SeededGenerator(seed: UInt64(seed))
      var procedure = DiscoveryProcedure(known: nil)
      var action = ProcedureAction.request(procedure.first)
      var requests = 0
      while case .request(let pdu) = action {
        requests += 1
        #expect(requests <= 3 * DiscoveryProcedure.attributeLimit, "seed \(seed)")
        action = procedure.received(answer(to: pdu, &random))
      }
      if case .table(let table) = action {
        #expect(table.entries.count <= DiscoveryProcedure.attributeLimit, "seed \(seed)")
        for entry in table.entries {
          #expect(table.entry(ofValue: entry.value) == entry, "seed \(seed)")
          #expect(table.entry(of: entry.name) == entry, "seed \(seed)")
        }
      }
    }
  }

  /// Mostly plausible, so that the later stages are reached.
  private func answer(to pdu: ATTPDU, _ random: inout SeededGenerator) -> ATTPDU {
    if Int.random(in: 0..<6, using: &random) == 0 {
      return .errorResponse(request: pdu.opcode, handle: 1, code: .attributeNotFound)
    }
    let isWild = Int.random(in: 0..<50, using: &random) == 0
    switch pdu {
    case .readByGroupTypeRequest(let start, _, _):
      var handle = start
      return .readByGroupTypeResponse(
        (0..<3).map { _ in
          let first = next(&handle, isWild, &random)
          let last = next(&handle, isWild, &random)
          return ATTGroupValue(start: first, end: max(first, last), value: Self.batteryValue)
        })
    case .readByTypeRequest(let start, _, .characteristic):
      var handle = start
      return .readByTypeResponse(
        (0..<3).map { _ in
          let declaration = next(&handle, isWild, &random)
          return Self.declaration(declaration, value: next(&handle, isWild, &random))
        })
    case .findInformationRequest(let start, _):
      var handle = start
      return .findInformationResponse(
        (0..<5).map { _ in
          ATTHandleUUID(
            handle: next(&handle, isWild, &random),
            uuid: BluetoothUUID(UInt16.random(in: 0x2800...0x2904, using: &random)))
        })
    default:
      return .readByTypeResponse([ATTHandleValue(handle: 1, value: [1])])
    }
  }

  private func next(_ handle: inout UInt16, _ isWild: Bool, _ random: inout SeededGenerator) -> UInt16 {
    if isWild { return UInt16.random(in: 0...UInt16.max, using: &random) }
    let this = handle
    handle = UInt16(clamping: Int(handle) + Int.random(in: 1...400, using: &random))
    return this
  }
}
