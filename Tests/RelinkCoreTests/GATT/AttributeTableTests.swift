import BluetoothWire
import RelinkCore
import Testing

@Suite struct AttributeTableTests {
  /// Two services of one UUID around another one, a characteristic UUID three times.
  private static let table = AttributeTable(
    services: [
      .init(uuid: .battery, start: 1, end: 9), .init(uuid: .heartRate, start: 10, end: 19),
      .init(uuid: .battery, start: 20, end: 0xFFFF),
    ],
    characteristics: [
      found(
        service: 0, .batteryLevel, declaration: 2, descriptors: [(4, .clientCharacteristicConfiguration)]),
      found(service: 0, .batteryLevel, declaration: 5),
      found(service: 1, .batteryLevel, declaration: 11),
      found(service: 2, .batteryLevel, declaration: 21, value: 0xFFFF),
    ],
    databaseHash: nil)

  private static func found(
    service: Int, _ uuid: BluetoothUUID, declaration: UInt16, value: UInt16? = nil,
    descriptors: [(UInt16, BluetoothUUID)] = []
  ) -> AttributeTable.Found {
    var found = AttributeTable.Found(
      service: service, uuid: uuid, properties: [.read, .notify], declaration: declaration,
      value: value ?? declaration + 1)
    found.descriptors = descriptors.map { ATTHandleUUID(handle: $0.0, uuid: $0.1) }
    return found
  }

  @Test(
    arguments: [
      (Characteristic(.batteryLevel), 3), (Characteristic(.batteryLevel, occurrence: 1), 6),
      (Characteristic(.batteryLevel, occurrence: 2), 12),
      (Characteristic(.batteryLevel, occurrence: 3), 0xFFFF),
      (Characteristic(.batteryLevel, in: .battery), 3),
      (Characteristic(.batteryLevel, in: .battery, occurrence: 1), 6),
      (Characteristic(.batteryLevel, in: .battery, occurrence: 2), 0xFFFF),
      (Characteristic(.batteryLevel, in: .heartRate), 12),
    ] as [(Characteristic, UInt16)])
  func namesLeadToHandles(_ name: Characteristic, _ handle: UInt16) {
    #expect(Self.table.valueHandle(of: name) == handle)
    #expect(Self.table.entry(of: name)?.value == handle)
    // What a session sees leads to the same place, under a name that means nothing else.
    let resolved = Self.table.discovered.resolve(name)
    #expect(resolved.flatMap { Self.table.valueHandle(of: $0.name) } == handle)
    #expect(resolved?.name == Self.table.entry(ofValue: handle)?.name)
  }

  @Test(arguments: [
    Characteristic(.batteryLevel, occurrence: 4), Characteristic(.batteryLevel, occurrence: -1),
    Characteristic(.batteryLevel, in: .battery, occurrence: 3),
    Characteristic(.batteryLevel, in: .heartRate, occurrence: 1), Characteristic(.serviceChanged),
    Characteristic(.batteryLevel, in: .genericAccess),
  ])
  func namesOfNothingLeadNowhere(_ name: Characteristic) {
    #expect(Self.table.valueHandle(of: name) == nil)
    #expect(Self.table.discovered.resolve(name) == nil)
  }

  @Test func onlyValueHandlesAreFound() {
    let handles = (UInt16(0)...0xFFFF).filter { Self.table.entry(ofValue: $0) != nil }
    #expect(handles == [3, 6, 12, 0xFFFF])
  }

  @Test func configurationIsTheDescriptorOfThatType() {
    #expect(Self.table.entry(of: Characteristic(.batteryLevel))?.configuration == 4)
    #expect(Self.table.entry(of: Characteristic(.batteryLevel, occurrence: 1))?.configuration == nil)
  }

  @Test func tablesWithoutAttributesAreTables() {
    let empty = AttributeTable(services: [], characteristics: [], databaseHash: nil)
    #expect(empty.discovered == [])
    #expect(empty.entry(ofValue: 1) == nil)
    #expect(!empty.hasDatabaseHash)
    #expect(!empty.hasSameAttributes(as: Self.table))
  }
}
