import BluetoothWire
import Testing

@testable import RelinkCore

/// The bytes of version 1, written by hand: a change of them needs a new version.
@Suite struct JournalFormatTests {
  private let plain = StoredOperation(.write(Characteristic(BluetoothUUID(0x2A19)), [0xAB, 0xCD]))

  @Test func aPlainWrite() throws {
    let bytes = hex(
      """
      01                                version
      04 02 192A 00 0000000000000000    a write; UUID, no service, first of its name
      02000000 ABCD                     its value
      02                                not idempotent
      00 00 00 00 00 00 00 01 00 00     no time, lane, key; normal priority, security level 1, in memory
      00 00                             no deadline, no boot
      """)
    #expect(try plain.encoded() == bytes)
    #expect(try StoredOperation(decoding: bytes) == plain)
  }

  @Test func everythingAtOnce() throws {
    var operation = plain
    let service = BluetoothUUID(0x0011_2233_4455_6677, 0x8899_AABB_CCDD_EEFF)
    let probed = Characteristic(BluetoothUUID(0x2A00), in: service, occurrence: 1)
    operation.request = .setNotifying(probed, true)
    operation.idempotency = .verified(by: .value(of: probed, is: [7]))
    operation.options.offerBefore = ExpiryInstant(bootTime: 1, wall: -1)
    operation.options.lane = "door"
    operation.options.priority = .low
    operation.options.supersedes = "set"
    operation.options.onExpiry = .dropLink
    operation.options.ifUnavailable = .fail
    operation.options.continuity = .unbroken
    operation.options.security = .secureConnections
    operation.options.durability = .durable
    operation.options.isSensitive = true
    operation.deadline = ExpiryInstant(bootTime: 2, wall: 3)
    operation.bootID = "b"
    let name = "02 002A 01 10 FFEEDDCCBBAA9988 7766554433221100 0100000000000000"
    let bytes = hex(
      """
      01
      07 \(name) 01                     notify, on
      03 02 \(name) 01000000 07         verified by a value
      01 0100000000000000 FFFFFFFFFFFFFFFF
      01 04000000 646F6F72              lane
      FF                                low priority
      01 03000000 736574                superseding key
      01 01 01 04 01 01
      01 0200000000000000 0300000000000000
      01 01000000 62
      """)
    #expect(try operation.encoded() == bytes)
    #expect(try StoredOperation(decoding: bytes) == operation)
  }

  @Test func aMark() throws {
    let mark = StoredMark(
      generation: Generation(rawValue: 3),
      at: Timestamp(monotonic: MonotonicInstant(nanoseconds: 4), bootTime: 5, wall: 6), offers: 2, bootID: "b"
    )
    let bytes = hex(
      """
      01 0300000000000000
      0400000000000000 0500000000000000 0600000000000000
      0200000000000000
      01 01000000 62
      """)
    #expect(mark.encoded() == bytes)
    #expect(try StoredMark(decoding: bytes) == mark)
  }

  @Test func outcomes() throws {
    let doubt = Doubt(
      cause: .linkLost(.busy), generation: Generation(rawValue: 1),
      offeredAt: Timestamp(monotonic: MonotonicInstant(nanoseconds: 2), bootTime: 3, wall: 4), offers: 1,
      lastPossibleEffect: MonotonicInstant(nanoseconds: 9))
    let all: [(Outcome<RelinkCore.Confirmation>, String)] = [
      (.succeeded(.probed), "01 01 06000000 70726F626564"),
      (.rejected(Rejection(code: ATTErrorCode(rawValue: 0x80), provesNotApplied: true)), "01 02 80 01"),
      (.notSent(.deadline), "01 03 03"),
      (.notSent(.refused(.system(11))), "01 03 07 07 0B000000"),
      (.notSent(.superseded(by: OperationID(OperationNumber(rawValue: 5)))), "01 03 0B 02000000 2335"),
      (.notSent(.storeFailed(JournalStoreError(.full, "x"))), "01 03 0F 04000000 66756C6C 01000000 78 01"),
      (
        .indeterminate(doubt),
        """
        01 04 01 04000000 62757379 0100000000000000
        0200000000000000 0300000000000000 0400000000000000
        0100000000000000 01 0900000000000000
        """
      ),
    ]
    for (outcome, text) in all {
      #expect(JournalCoding.encode(outcome) == hex(text), "\(outcome)")
      #expect(try JournalCoding.decode(hex(text)) == outcome)
    }
  }

  @Test func aFingerprintOutlivesVersions() {
    // The digest of request and tag as the first version writes them.
    let parts = hex("04 02 192A 00 0000000000000000 02000000 ABCD 02")
    #expect(plain.fingerprint == SHA256.digest(of: parts))
  }
}

/// The bytes of hexadecimal digits; two blanks and what follows them are a remark.
private func hex(_ text: String) -> [UInt8] {
  let digits = text.split(separator: "\n").flatMap { line in
    line.replacing(#/ {2,}.*/#, with: "").compactMap(\.hexDigitValue)
  }
  return stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
}
