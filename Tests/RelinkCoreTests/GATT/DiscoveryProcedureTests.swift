import BluetoothWire
import RelinkCore
import Testing

/// A server's table, which answers the requests of discovery as the specification says.
struct ScriptedServer {
  var attributes: [(handle: UInt16, type: BluetoothUUID, value: [UInt8])]
  /// The last handle of the group that begins at a handle.
  var groupEnds: [UInt16: UInt16]
  var mtu = 23
  var requests: [ATTPDU] = []

  mutating func answer(_ request: ATTPDU) -> ATTPDU {
    requests.append(request)
    let notFound = ATTPDU.errorResponse(request: request.opcode, handle: 1, code: .attributeNotFound)
    switch request {
    case .readByGroupTypeRequest(let start, let end, let type):
      let groups = attributes.filter { $0.type == type && start...end ~= $0.handle }
        .map { ATTGroupValue(start: $0.handle, end: groupEnds[$0.handle] ?? $0.handle, value: $0.value) }
      let length = groups.first?.value.count ?? 0
      let limit = ATTLimits.maximumReadByGroupTypeItems(mtu: mtu, valueLength: length)
      let items = groups.prefix { $0.value.count == length }.prefix(limit)
      return items.isEmpty ? notFound : .readByGroupTypeResponse(Array(items))
    case .readByTypeRequest(let start, let end, let type):
      let values = attributes.filter { $0.type == type && start...end ~= $0.handle }
        .map { ATTHandleValue(handle: $0.handle, value: $0.value) }
      let length = values.first?.value.count ?? 0
      let limit = ATTLimits.maximumReadByTypeItems(mtu: mtu, valueLength: length)
      let items = values.prefix { $0.value.count == length }.prefix(limit)
      return items.isEmpty ? notFound : .readByTypeResponse(Array(items))
    case .findInformationRequest(let start, let end):
      let found = attributes.filter { start...end ~= $0.handle }
      let length = found.first?.type.wireLength ?? 2
      let limit = ATTLimits.maximumFindInformationItems(mtu: mtu, uuidLength: length)
      let items = found.prefix { $0.type.wireLength == length }.prefix(limit)
      return items.isEmpty
        ? notFound : .findInformationResponse(items.map { ATTHandleUUID(handle: $0.handle, uuid: $0.type) })
    default:
      return .errorResponse(request: request.opcode, handle: 0, code: .requestNotSupported)
    }
  }
}

extension ScriptedServer {
  static let vendor = BluetoothUUID(0x1234_5678_9ABC_DEF0, 0x0FED_CBA9_8765_4321)

  /// Generic Attribute with a hash, Heart Rate with descriptors, a vendor's service up to the last handle.
  static func device(hash: [UInt8]? = Array(0..<16), shift: UInt16 = 0) -> ScriptedServer {
    var server = ScriptedServer(attributes: [], groupEnds: [:])
    server.add(service: .genericAttribute, 1...9)
    server.add(.serviceChanged, [.indicate], at: 2, value: 3)
    server.attributes.append((4, .clientCharacteristicConfiguration, [0, 0]))
    if let hash {
      server.add(.databaseHash, [.read], at: 5, value: 6)
      server.attributes[server.attributes.count - 1].value = hash
    }
    server.add(service: .heartRate, (0x10 + shift)...(0x20 + shift))
    server.add(.heartRateMeasurement, [.notify], at: 0x11 + shift, value: 0x12 + shift)
    server.attributes.append((0x13 + shift, .clientCharacteristicConfiguration, [0, 0]))
    server.add(.bodySensorLocation, [.read], at: 0x14 + shift, value: 0x15 + shift)
    server.add(vendor, [.read, .write, .indicate], at: 0x16 + shift, value: 0x17 + shift)
    server.attributes.append((0x18 + shift, .characteristicUserDescription, [0x41]))
    server.attributes.append((0x19 + shift, .clientCharacteristicConfiguration, [0, 0]))
    server.add(service: vendor, (0x30 + shift)...0xFFFF)
    server.add(vendor, [.write], at: 0xFFFD, value: 0xFFFE)
    server.attributes.append((0xFFFF, vendor, [1]))
    return server
  }

  mutating func add(service uuid: BluetoothUUID, _ handles: ClosedRange<UInt16>) {
    attributes.append((handles.lowerBound, .primaryService, uuid.encoded()))
    groupEnds[handles.lowerBound] = handles.upperBound
  }

  mutating func add(
    _ uuid: BluetoothUUID, _ properties: CharacteristicProperties, at declaration: UInt16, value: UInt16
  ) {
    let bytes = [properties.rawValue, UInt8(value & 0xFF), UInt8(value >> 8)] + uuid.encoded()
    attributes.append((declaration, .characteristic, bytes))
    attributes.append((value, uuid, [0]))
  }

  /// Runs a procedure against the server until it is over.
  mutating func run(_ procedure: DiscoveryProcedure) -> ProcedureAction {
    var procedure = procedure
    var action = ProcedureAction.request(procedure.first)
    while case .request(let pdu) = action { action = procedure.received(answer(pdu)) }
    return action
  }

  func learnt() -> AttributeTable? {
    var server = self
    guard case .table(let table) = server.run(DiscoveryProcedure(known: nil)) else { return nil }
    return table
  }
}

@Suite struct DiscoveryProcedureTests {
  @Test(arguments: [23, 64, 185, 517]) func wholeTableIsLearntAtEachMTU(_ mtu: Int) throws {
    var server = ScriptedServer.device()
    server.mtu = mtu
    guard case .table(let table) = server.run(DiscoveryProcedure(known: nil)) else {
      Issue.record("no table")
      return
    }
    #expect(table.services.map(\.start) == [1, 0x10, 0x30])
    #expect(table.services.map(\.end) == [9, 0x20, 0xFFFF])
    #expect(table.entries.map(\.value) == [3, 6, 0x12, 0x15, 0x17, 0xFFFE])
    #expect(
      table.entries.map { $0.descriptors.map(\.handle) } == [[4], [], [0x13], [], [0x18, 0x19], [0xFFFF]])
    #expect(table.databaseHash == Array(0..<16))
    let vendor = ScriptedServer.vendor
    #expect(
      table.discovered == [
        DiscoveredService(
          uuid: .genericAttribute,
          characteristics: [
            DiscoveredCharacteristic(
              name: Characteristic(.serviceChanged, in: .genericAttribute), properties: [.indicate],
              descriptors: [.clientCharacteristicConfiguration]),
            DiscoveredCharacteristic(
              name: Characteristic(.databaseHash, in: .genericAttribute), properties: [.read], descriptors: []
            ),
          ]),
        DiscoveredService(
          uuid: .heartRate,
          characteristics: [
            DiscoveredCharacteristic(
              name: Characteristic(.heartRateMeasurement, in: .heartRate), properties: [.notify],
              descriptors: [.clientCharacteristicConfiguration]),
            DiscoveredCharacteristic(
              name: Characteristic(.bodySensorLocation, in: .heartRate), properties: [.read], descriptors: []),
            DiscoveredCharacteristic(
              name: Characteristic(vendor, in: .heartRate), properties: [.read, .write, .indicate],
              descriptors: [.characteristicUserDescription, .clientCharacteristicConfiguration]),
          ]),
        DiscoveredService(
          uuid: vendor,
          characteristics: [
            DiscoveredCharacteristic(
              name: Characteristic(vendor, in: vendor), properties: [.write], descriptors: [vendor])
          ]),
      ])
  }

  @Test func requestsAreTheFewestThatCoverTheTable() {
    var server = ScriptedServer.device()
    _ = server.run(DiscoveryProcedure(known: nil))
    #expect(
      server.requests == [
        .readByTypeRequest(start: 1, end: 0xFFFF, type: .databaseHash),
        .readByGroupTypeRequest(start: 1, end: 0xFFFF, type: .primaryService),
        .readByGroupTypeRequest(start: 0x21, end: 0xFFFF, type: .primaryService),
        .readByTypeRequest(start: 1, end: 0xFFFF, type: .characteristic),
        .readByTypeRequest(start: 0x12, end: 0xFFFF, type: .characteristic),
        .readByTypeRequest(start: 0x15, end: 0xFFFF, type: .characteristic),
        .readByTypeRequest(start: 0x17, end: 0xFFFF, type: .characteristic),
        .readByTypeRequest(start: 0xFFFE, end: 0xFFFF, type: .characteristic),
        .findInformationRequest(start: 4, end: 0xFFFF),
        .findInformationRequest(start: 0x13, end: 0xFFFF),
        .findInformationRequest(start: 0x18, end: 0xFFFF),
        .findInformationRequest(start: 0xFFFF, end: 0xFFFF),
      ])
  }

  // MARK: Validation

  @Test func equalHashKeepsTheTableAfterOneRequest() {
    var server = ScriptedServer.device()
    let known = server.learnt()
    server.requests = []
    #expect(server.run(DiscoveryProcedure(known: known)) == known.map(ProcedureAction.table))
    #expect(server.requests == [.readByTypeRequest(start: 1, end: 0xFFFF, type: .databaseHash)])
  }

  @Test func otherHashLearnsTheTableAnew() {
    let known = ScriptedServer.device().learnt()
    var moved = ScriptedServer.device(hash: Array(1...16), shift: 4)
    guard case .table(let table) = moved.run(DiscoveryProcedure(known: known)) else {
      Issue.record("no table")
      return
    }
    #expect(table.databaseHash == Array(1...16))
    #expect(table.valueHandle(of: Characteristic(.heartRateMeasurement)) == 0x16)
    #expect(known?.hasSameAttributes(as: table) == false)
  }

  @Test func hashThatIsGoneLearnsTheTableAnew() {
    let known = ScriptedServer.device().learnt()
    var server = ScriptedServer.device(hash: nil)
    guard case .table(let table) = server.run(DiscoveryProcedure(known: known)) else {
      Issue.record("no table")
      return
    }
    #expect(table.databaseHash == nil)
    #expect(!table.hasDatabaseHash)
  }

  @Test func tableWithoutAHashIsLearntOnEachLinkWithoutAskingForOne() {
    let known = ScriptedServer.device(hash: nil).learnt()
    var server = ScriptedServer.device(hash: nil)
    #expect(server.run(DiscoveryProcedure(known: known)) == known.map(ProcedureAction.table))
    #expect(server.requests.first == .readByGroupTypeRequest(start: 1, end: 0xFFFF, type: .primaryService))
    #expect(server.requests.count > 5)
  }

  @Test func announcedChangeLearnsTheTableAnewInSpiteOfItsHash() {
    var server = ScriptedServer.device()
    let known = server.learnt()
    server.requests = []
    #expect(
      server.run(DiscoveryProcedure(known: known, mayKeepKnown: false)) == known.map(ProcedureAction.table))
    #expect(server.requests.count > 5)
  }

  @Test(arguments: [[], [1], [UInt8](repeating: 0, count: 15), [UInt8](repeating: 0, count: 17)])
  func hashOfAnotherLengthIsNone(_ hash: [UInt8]) {
    #expect(ScriptedServer.device(hash: hash).learnt()?.databaseHash == nil)
  }

  // MARK: Devices that have little

  @Test func deviceWithoutServicesHasAnEmptyTable() {
    var server = ScriptedServer(attributes: [], groupEnds: [:])
    #expect(
      server.run(DiscoveryProcedure(known: nil))
        == .table(AttributeTable(services: [], characteristics: [], databaseHash: nil)))
  }

  @Test func characteristicsOutsidePrimaryServicesArePassedOver() {
    var server = ScriptedServer(attributes: [], groupEnds: [:])
    server.add(service: .battery, 1...3)
    server.add(.batteryLevel, [.read], at: 2, value: 3)
    server.attributes.append((5, .secondaryService, BluetoothUUID.heartRate.encoded()))
    server.add(.bodySensorLocation, [.read], at: 6, value: 7)
    server.add(service: .battery, 9...11)
    server.add(.batteryLevel, [.read], at: 10, value: 11)
    #expect(server.learnt()?.entries.map(\.value) == [3, 11])
  }

  @Test(arguments: [ATTErrorCode.unlikelyError, .requestNotSupported, .insufficientAuthentication])
  func otherErrorsRejectTheDiscovery(_ code: ATTErrorCode) {
    for step in 1..<6 {
      var server = ScriptedServer.device()
      var procedure = DiscoveryProcedure(known: nil)
      var action = ProcedureAction.request(procedure.first)
      for _ in 0..<step {
        guard case .request(let pdu) = action else { break }
        action = procedure.received(server.answer(pdu))
      }
      guard case .request(let pdu) = action else { return }
      #expect(
        procedure.received(.errorResponse(request: pdu.opcode, handle: 1, code: code))
          == .finished(.failure(.rejected(code))))
    }
  }
}
