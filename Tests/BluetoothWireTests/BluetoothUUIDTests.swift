import BluetoothWire
import Foundation
import Testing

@Suite struct BluetoothUUIDTests {
  @Test func aShortUUIDEqualsItsFormOnTheBaseUUID() throws {
    let full = try #require(BluetoothUUID("0000180F-0000-1000-8000-00805F9B34FB"))
    let received = try #require(BluetoothUUID(littleEndian: hex("FB349B5F80000080 0010 0000 0F18 0000")))
    let forms = [
      BluetoothUUID(0x180F), BluetoothUUID(0x180F as UInt32), full, received, .battery,
      BluetoothUUID(0x180F).expanded,
      BluetoothUUID(0x0000_180F_0000_1000, 0x8000_0080_5F9B_34FB),
    ]
    for form in forms {
      #expect(form == .battery)
      #expect(form.short == 0x180F)
      #expect(form.description == "180F")
    }
    #expect(Set(forms).count == 1)
    #expect(BluetoothUUID.battery != .batteryLevel)
  }

  @Test func theFormOfAReceivedUUIDIsSentAgain() throws {
    let wide = hex("FB349B5F80000080 0010 0000 0F18 0000")
    let received = try #require(BluetoothUUID(littleEndian: wide))
    #expect(received.wireLength == 16)
    #expect(received.encoded() == wide)
    #expect(received.shortened.wireLength == 2)
    #expect(received.shortened.encoded() == [0x0F, 0x18])
    #expect(received.shortened.expanded.encoded() == wide)
    #expect(BluetoothUUID("0000180F-0000-1000-8000-00805F9B34FB")?.encoded() == [0x0F, 0x18])
  }

  @Test func a32BitUUIDTravelsIn128Bits() throws {
    let uuid = BluetoothUUID(0x1234_5678 as UInt32)
    #expect(uuid.short == nil)
    #expect(uuid.wireLength == 16)
    #expect(uuid.encoded() == hex("FB349B5F80000080 0010 0000 7856 3412"))
    #expect(BluetoothUUID(littleEndian: hex("78563412")) == uuid)
    #expect(uuid.description == "12345678-0000-1000-8000-00805F9B34FB")
    #expect(uuid.expanded == uuid)
  }

  @Test func octetsOfAnyOtherNumberAreNoUUID() {
    for count in 0...20 {
      let octets = [UInt8](repeating: 1, count: count)
      let isUUID = [2, 4, 16].contains(count)
      #expect((BluetoothUUID(littleEndian: octets) != nil) == isUUID)
      #expect((BluetoothUUID(littleEndian: octets.span.bytes) != nil) == isUUID)
      #expect((BluetoothUUID(littleEndian: octets[...]) != nil) == isUUID)
    }
  }

  @Test(arguments: [
    ("180F", "180F"), ("180f", "180F"), ("0x180F", "180F"), ("0X180f", "180F"), ("0000180F", "180F"),
    ("0x0000180F", "180F"), ("0001", "0001"), ("12345678", "12345678-0000-1000-8000-00805F9B34FB"),
    ("f0000001-0451-4000-b000-0123456789ab", "F0000001-0451-4000-B000-0123456789AB"),
    ("00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000000"),
    ("FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF"),
    ("0000180F-0000-1000-8000-00805F9B34FB", "180F"),
  ])
  func textThatIsAUUID(text: String, description: String) throws {
    let uuid = try #require(BluetoothUUID(text))
    #expect(uuid.description == description)
    #expect(BluetoothUUID(uuid.description) == uuid)
  }

  @Test(arguments: [
    "", "0", "18", "180", "180G", "0x", "0x18", "0x180", "0x180F0", "180F0", " 180F", "180F ", "+180F",
    "-180F",
    "0x0x180F", "1234567", "123456789", "F0000001-0451-4000-B000-0123456789A",
    "F0000001-0451-4000-B000-0123456789ABC",
    "F0000001x0451-4000-B000-0123456789AB", "F000000100451-4000-B000-0123456789AB",
    "F0000001045140000B0000123456789AB",
    "G0000001-0451-4000-B000-0123456789AB", "{0000001-0451-4000-B000-0123456789AB", "１８０Ｆ",
    "F000-00010451-4000-B000-0123456789AB",
  ])
  func textThatIsNoUUID(text: String) {
    #expect(BluetoothUUID(text) == nil)
  }

  @Test func anyUUIDReadsBackFromItsTextAndItsOctets() {
    var random = SeededGenerator(seed: 4)
    for _ in 0..<2_000 {
      let uuid = random.uuid()
      #expect(BluetoothUUID(uuid.description) == uuid)
      #expect(BluetoothUUID(littleEndian: uuid.encoded()) == uuid)
      #expect(uuid.encoded().count == uuid.wireLength)
    }
  }

  @Test func itIsCodedAsItsText() throws {
    let uuids: [BluetoothUUID] = [.battery, BluetoothUUID(1, 2)]
    let coded = try JSONEncoder().encode(uuids)
    #expect(String(decoding: coded, as: UTF8.self) == #"["180F","00000000-0000-0001-0000-000000000002"]"#)
    #expect(try JSONDecoder().decode([BluetoothUUID].self, from: coded) == uuids)
    #expect(throws: DecodingError.self) {
      try JSONDecoder().decode([BluetoothUUID].self, from: Data(#"["battery"]"#.utf8))
    }
  }

  @Test func theAssignedNumbers() {
    let numbers: [(BluetoothUUID, UInt16)] = [
      (.primaryService, 0x2800), (.secondaryService, 0x2801), (.include, 0x2802), (.characteristic, 0x2803),
      (.characteristicExtendedProperties, 0x2900), (.characteristicUserDescription, 0x2901),
      (.clientCharacteristicConfiguration, 0x2902), (.serverCharacteristicConfiguration, 0x2903),
      (.genericAccess, 0x1800), (.genericAttribute, 0x1801), (.deviceInformation, 0x180A),
      (.heartRate, 0x180D),
      (.battery, 0x180F), (.deviceName, 0x2A00), (.appearance, 0x2A01), (.serviceChanged, 0x2A05),
      (.batteryLevel, 0x2A19), (.heartRateMeasurement, 0x2A37), (.clientSupportedFeatures, 0x2B29),
      (.databaseHash, 0x2B2A),
    ]
    for (uuid, number) in numbers {
      #expect(uuid.short == number)
      #expect(uuid.wireLength == 2)
    }
  }
}

@Suite struct AttributeHandleTests {
  @Test func theRangeOfHandles() {
    #expect(AttributeHandle.min.rawValue == 1)
    #expect(AttributeHandle.max.rawValue == 0xFFFF)
    #expect(AttributeHandle.min < .max)
    #expect(!AttributeHandle(0).isValid)
    #expect(AttributeHandle(1).isValid)
    #expect(AttributeHandle(1).next == AttributeHandle(2))
    #expect(AttributeHandle.max.next == nil)
    #expect(AttributeHandle(rawValue: 0x2A).description == "0x002A")
  }
}

@Suite struct BluetoothAddressTests {
  @Test func theTextIsMostSignificantFirstAndTheWireIsNot() throws {
    let address = try #require(BluetoothAddress("C0:DE:00:00:00:01"))
    #expect(address.value == 0xC0DE_0000_0001)
    #expect(address.littleEndianBytes == [0x01, 0x00, 0x00, 0x00, 0xDE, 0xC0])
    #expect(BluetoothAddress(littleEndian: [0x01, 0x00, 0x00, 0x00, 0xDE, 0xC0]) == address)
    #expect(address.description == "C0:DE:00:00:00:01")
    #expect(BluetoothAddress("c0:de:00:00:00:01") == address)
    #expect(BluetoothAddress(0).description == "00:00:00:00:00:00")
    #expect(BluetoothAddress(0xFFFF_0000_0000_0001).description == "00:00:00:00:00:01")
  }

  @Test(arguments: [
    "", "C0:DE:00:00:00", "C0:DE:00:00:00:01:", "C0:DE:00:00:00:0", "C0-DE-00-00-00-01", "C0DE00000001",
    "G0:DE:00:00:00:01",
    " C0:DE:00:00:00:0", "C0:DE:00:00:00:01 ", "C0:DE:00:00:0:001", "::::::::::::::::: ", "Ｃ0:DE:00:00:00",
  ])
  func textThatIsNoAddress(text: String) {
    #expect(BluetoothAddress(text) == nil)
  }

  @Test func octetsOfAnyOtherNumberAreNoAddress() {
    for count in 0...8 {
      #expect((BluetoothAddress(littleEndian: [UInt8](repeating: 1, count: count)) != nil) == (count == 6))
    }
  }

  @Test(
    arguments: [
      ("C0:DE:00:00:00:01", .static), ("FF:FF:FF:FF:FF:FF", .static),
      ("7F:00:00:00:00:01", .resolvablePrivate),
      ("40:00:00:00:00:01", .resolvablePrivate), ("3F:00:00:00:00:01", .nonResolvablePrivate),
      ("80:00:00:00:00:01", .reserved),
    ] as [(String, BluetoothAddress.RandomKind)])
  func theTopBitsTellTheKindOfARandomAddress(text: String, kind: BluetoothAddress.RandomKind) {
    #expect(BluetoothAddress(text)?.randomKind == kind)
  }

  @Test func itIsOrderedAndCodedAsItsText() throws {
    let low = try #require(BluetoothAddress("00:00:00:00:00:FF"))
    let high = try #require(BluetoothAddress("01:00:00:00:00:00"))
    #expect(low < high)
    let coded = try JSONEncoder().encode([low, high])
    #expect(String(decoding: coded, as: UTF8.self) == #"["00:00:00:00:00:FF","01:00:00:00:00:00"]"#)
    #expect(try JSONDecoder().decode([BluetoothAddress].self, from: coded) == [low, high])
    #expect(throws: DecodingError.self) {
      try JSONDecoder().decode([BluetoothAddress].self, from: Data(#"["C0"]"#.utf8))
    }
  }
}
