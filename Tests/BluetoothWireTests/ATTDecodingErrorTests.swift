import BluetoothWire
import Testing

/// What a PDU with this opcode may be, stated apart from the codec: Core Specification Vol 3 Part F 3.4.
private enum Allowed {
  case exactly(Int)
  case atLeast(Int)
  case oneOf([Int])
  /// `header` octets, then items of `item` octets, at least `minimum` of them.
  case items(header: Int, item: Int, minimum: Int)
  /// The length of an item is in the second octet.
  case sizedItems(smallest: Int)
  case handleLengthValues

  init(_ opcode: UInt8) {
    switch opcode {
    case 0x13, 0x19, 0x1E: self = .exactly(1)
    case 0x18: self = .exactly(2)
    case 0x02, 0x03, 0x0A: self = .exactly(3)
    case 0x01, 0x04, 0x0C: self = .exactly(5)
    case 0x12, 0x1B, 0x1D, 0x52: self = .atLeast(3)
    case 0x16, 0x17, 0x21: self = .atLeast(5)
    case 0x06: self = .atLeast(7)
    case 0xD2: self = .atLeast(15)
    case 0x08, 0x10: self = .oneOf([7, 21])
    case 0x07: self = .items(header: 1, item: 4, minimum: 1)
    case 0x0E, 0x20: self = .items(header: 1, item: 2, minimum: 2)
    case 0x09: self = .sizedItems(smallest: 2)
    case 0x11: self = .sizedItems(smallest: 4)
    case 0x23: self = .handleLengthValues
    default: self = .atLeast(1)
    }
  }

  static func allows(_ octets: [UInt8]) -> Bool {
    guard let opcode = octets.first else { return false }
    if opcode == 0x05 {
      guard octets.count > 2 else { return false }
      return octets[1] == 1 && (octets.count - 2) % 4 == 0 || octets[1] == 2 && (octets.count - 2) % 18 == 0
    }
    if opcode == 0x18 { return octets.count == 2 && octets[1] < 2 }
    switch Allowed(opcode) {
    case .exactly(let count): return octets.count == count
    case .atLeast(let count): return octets.count >= count
    case .oneOf(let counts): return counts.contains(octets.count)
    case .items(let header, let item, let minimum):
      return octets.count >= header + minimum * item && (octets.count - header) % item == 0
    case .sizedItems(let smallest):
      guard octets.count > 2, octets[1] >= smallest else { return false }
      return (octets.count - 2) % Int(octets[1]) == 0
    case .handleLengthValues:
      var rest = octets.dropFirst()
      var count = 0
      while rest.count >= 4 {
        let length = Int(rest[rest.startIndex + 2]) | Int(rest[rest.startIndex + 3]) << 8
        guard rest.count >= 4 + length else { return false }
        rest = rest.dropFirst(4 + length)
        count += 1
      }
      return rest.isEmpty && count >= 2
    }
  }
}

/// Checks one string of octets against the rules above, and that nothing is lost on the way.
private func check(_ octets: [UInt8], _ location: SourceLocation = #_sourceLocation) {
  do {
    let pdu = try ATTPDU(decoding: octets)
    #expect(Allowed.allows(octets), "accepted \(hex(octets)) as \(pdu)", sourceLocation: location)
    #expect(pdu.encoded() == octets, sourceLocation: location)
  } catch {
    #expect(!Allowed.allows(octets), "refused \(hex(octets)): \(error)", sourceLocation: location)
    #expect(error.opcode?.rawValue == octets.first, sourceLocation: location)
    #expect((error.problem == .empty) == octets.isEmpty, sourceLocation: location)
  }
}

@Suite struct ATTTotalityTests {
  @Test func everyStringOfNoneOneAndTwoOctets() {
    check([])
    for first in UInt8.min...UInt8.max {
      check([first])
      for second in UInt8.min...UInt8.max { check([first, second]) }
    }
  }

  @Test(arguments: PublishedLayout.all)
  func everyTruncationAndExtension(_ layout: PublishedLayout) {
    for count in 0..<layout.octets.count { check(Array(layout.octets.prefix(count))) }
    for extra in 1...20 { check(layout.octets + [UInt8](repeating: 0x5A, count: extra)) }
  }

  @Test(arguments: ATTOpcode.known)
  func everyTruncationOfGeneratedPDUs(_ opcode: ATTOpcode) {
    var random = SeededGenerator(seed: 0x7F00 + UInt64(opcode.rawValue))
    for _ in 0..<20 {
      let octets = random.pdu(opcode).encoded()
      for count in 0...octets.count { check(Array(octets.prefix(count))) }
    }
  }

  @Test func randomOctets() {
    var random = SeededGenerator(seed: 1)
    for _ in 0..<100_000 { check(random.bytes(0...48)) }
  }

  @Test func randomOctetsAfterAKnownOpcode() {
    var random = SeededGenerator(seed: 2)
    for opcode in ATTOpcode.known {
      for _ in 0..<3_000 { check([opcode.rawValue] + random.bytes(0...48)) }
    }
  }

  @Test func mutatedPDUs() {
    var random = SeededGenerator(seed: 3)
    for opcode in ATTOpcode.known {
      for _ in 0..<2_000 {
        var octets = random.pdu(opcode).encoded()
        for _ in 0..<Int.random(in: 1...3, using: &random) { mutate(&octets, &random) }
        check(octets)
      }
    }
  }

  private func mutate(_ octets: inout [UInt8], _ random: inout SeededGenerator) {
    let place = octets.isEmpty ? 0 : Int.random(in: 0..<octets.count, using: &random)
    switch random.next() % 4 {
    case 0 where !octets.isEmpty: octets[place] ^= 1 << UInt8(random.next() % 8)
    case 1 where !octets.isEmpty: octets.remove(at: place)
    case 2 where !octets.isEmpty: octets[place] = random.octet()
    default: octets.insert(random.octet(), at: place)
    }
  }
}

@Suite struct ATTDecodingErrorTests {
  @Test(
    arguments: [
      ("", .empty), ("0A 01", .truncated), ("0A 010000", .badLength), ("13 00", .badLength),
      ("05 01", .emptyList),
      ("05", .truncated), ("05 03 0100 0228", .invalidField), ("05 01 0100 02", .inconsistentList),
      ("05 02 0100 0228", .inconsistentList), ("07", .emptyList), ("07 0100 02", .inconsistentList),
      ("08 0100 FFFF 0028 00", .badLength), ("08 0100 FFFF 00", .truncated), ("09 07", .emptyList),
      ("09 00 0100", .inconsistentList), ("09 01 01", .inconsistentList),
      ("09 04 0100 01", .inconsistentList),
      ("11 03 010002", .inconsistentList), ("11 06 0100 0200 00", .inconsistentList), ("0E 0100", .truncated),
      ("0E 0100 0200 03", .inconsistentList), ("18 02", .invalidField), ("18", .truncated),
      ("21 0000", .truncated), ("23 0100 0000", .truncated), ("23 0100 0400 AABBCCDD", .badLength),
      ("23 0100 0000 0200 0100", .inconsistentList), ("23 0100 0100 AA 0200 01", .inconsistentList),
      ("D2 0100 0102030405060708090A0B", .truncated), ("01 0A 0100", .truncated),
    ] as [(String, ATTDecodingError.Problem)])
  func theProblemIsNamed(octets: String, problem: ATTDecodingError.Problem) {
    let octets = hex(octets)
    let expected = ATTDecodingError(opcode: octets.first.map { ATTOpcode(rawValue: $0) }, problem: problem)
    #expect(throws: expected) { try ATTPDU(decoding: octets) }
  }

  @Test func onlyARequestIsOwedAnAnswer() {
    for opcode in ATTOpcode.every {
      let error = ATTDecodingError(opcode: opcode, problem: .truncated)
      let isRequest = opcode.kind == .request
      #expect(error.isRequest == isRequest)
      #expect(error.answer?.encoded() == (isRequest ? [0x01, opcode.rawValue, 0, 0, 0x04] : nil))
    }
    #expect(ATTDecodingError(opcode: nil, problem: .empty).isRequest == false)
    #expect(ATTDecodingError(opcode: nil, problem: .empty).answer == nil)
  }

  @Test func theDescriptionNamesOpcodeAndProblem() {
    let error = ATTDecodingError(opcode: .readRequest, problem: .truncated)
    #expect(error.description == "ATT PDU with opcode 0x0A is truncated")
    #expect(ATTDecodingError(opcode: nil, problem: .empty).description == "ATT PDU is empty")
  }
}
