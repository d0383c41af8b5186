import BluetoothWire
import Testing

@testable import RelinkCore

/// What is put into a journal row comes out of it, and nothing else does.
@Suite struct JournalCodingTests {
  // MARK: Round trips

  @Test(arguments: 0..<25 as Range<UInt64>)
  func everyOperationComesBack(seed: UInt64) throws {
    var samples = StoredSamples(seed: seed)
    for operation in samples.operations() {
      let encoded = try operation.encoded()
      try #require(try StoredOperation(decoding: encoded) == operation, "\(operation)")
      try #require(try StoredOperation(decoding: encoded).encoded() == encoded, "\(operation)")
    }
  }

  @Test(arguments: 0..<25 as Range<UInt64>)
  func everyOutcomeAndMarkComesBack(seed: UInt64) throws {
    var samples = StoredSamples(seed: seed)
    for outcome in samples.outcomes() {
      try #require(try JournalCoding.decode(JournalCoding.encode(outcome)) == outcome, "\(outcome)")
    }
    for _ in 0..<20 {
      let mark = samples.mark()
      try #require(try StoredMark(decoding: mark.encoded()) == mark, "\(mark)")
    }
  }

  @Test func theSamplesHaveEveryCaseAndTheNextNumberIsUnknown() throws {
    var samples = StoredSamples(seed: 1)
    let outcomes = samples.outcomes().map(JournalCoding.encode)
    try everyNumber(outcomes, at: 1) { bytes throws in _ = try JournalCoding.decode(bytes) }
    let reasons = outcomes.filter { $0[1] == 3 }
    try everyNumber(reasons, at: 2) { bytes throws in _ = try JournalCoding.decode(bytes) }
    try everyNumber(reasons.filter { $0[2] == 7 }, at: 3) { bytes throws in
      _ = try JournalCoding.decode(bytes)
    }
    try everyNumber(outcomes.filter { $0[1] == 4 }, at: 2) { bytes throws in
      _ = try JournalCoding.decode(bytes)
    }
    let operations = try samples.operations().map { try $0.encoded() }
    try everyNumber(operations, at: 1) { bytes throws in _ = try StoredOperation(decoding: bytes) }
    try everyNumber(operations.filter { $0[1] == 1 }, at: 2) { bytes throws in
      _ = try StoredOperation(decoding: bytes)
    }
  }

  /// The byte there has every number from 1 on, and the one after the last is refused.
  private func everyNumber(
    _ encodings: [[UInt8]], at position: Int, _ decode: ([UInt8]) throws -> Void,
    location: SourceLocation = #_sourceLocation
  ) throws {
    let numbers = Set(encodings.map { $0[position] })
    let last = try #require(numbers.max(), sourceLocation: location)
    #expect(numbers == Set(1...last), sourceLocation: location)
    var next = try #require(encodings.first, sourceLocation: location)
    next[position] = last + 1
    do {
      try decode(next)
      Issue.record("\(last + 1) is known, and no sample has it", sourceLocation: location)
    } catch JournalCodingError.unknownCase(_, "\(last + 1)") {
      // As it should be.
    } catch {
      Issue.record("\(last + 1) at \(position): \(error)", sourceLocation: location)
    }
  }

  // MARK: Damage

  @Test func noDamageEndsTheProcessOrIsTakenForSomethingElse() throws {
    var samples = StoredSamples(seed: 7)
    let flips: [UInt8] = [1, 2, 4, 8, 16, 32, 64, 128]
    for operation in samples.operations() {
      damage(try operation.encoded(), by: flips) { try? StoredOperation(decoding: $0).encoded() }
    }
    for outcome in samples.outcomes() {
      damage(JournalCoding.encode(outcome), by: flips) {
        (try? JournalCoding.decode($0)).map(JournalCoding.encode)
      }
    }
    for _ in 0..<10 {
      damage(samples.mark().encoded(), by: flips) { (try? StoredMark(decoding: $0))?.encoded() }
    }
  }

  @Test func noByteIsSuchThatItEndsTheProcess() throws {
    let all = Array(1...UInt8.max)
    var operation = StoredOperation(.writeReliably([ReliableWrite(.batteryLevel, [1])]))
    operation.idempotency = .verified(by: .value(of: .batteryLevel, is: [2]))
    operation.options.lane = "door"
    operation.bootID = "ü"
    damage(try operation.encoded(), by: all) { try? StoredOperation(decoding: $0).encoded() }
    let now = Timestamp(monotonic: .zero, bootTime: 0, wall: 0)
    let doubt = Doubt(
      cause: .storeFailed(JournalStoreError(.full, "ü")), generation: Generation(rawValue: 1), offeredAt: now,
      offers: 1, lastPossibleEffect: .zero)
    damage(JournalCoding.encode(.indeterminate(doubt)), by: all) {
      (try? JournalCoding.decode($0)).map(JournalCoding.encode)
    }
  }

  /// Every beginning throws, so does a byte too many, and what a changed byte decodes to has just these bytes.
  private func damage(_ encoded: [UInt8], by differences: [UInt8], _ recoded: ([UInt8]) -> [UInt8]?) {
    for count in 0..<encoded.count where recoded(Array(encoded.prefix(count))) != nil {
      Issue.record("\(count) of \(encoded) decode")
    }
    if recoded(encoded + [0]) != nil { Issue.record("a byte behind \(encoded) is not seen") }
    // The middle of a long value has nothing to say.
    for position in encoded.indices where position < 80 || position >= encoded.count - 80 {
      var changed = encoded
      for difference in differences {
        changed[position] = encoded[position] ^ difference
        if let again = recoded(changed), again != changed {
          Issue.record("\(changed) encodes to \(again)")
        }
      }
    }
  }

  @Test func aLengthIsNotBelieved() {
    // A write whose value claims 4 GiB, and one that claims a byte more than there is.
    let head: [UInt8] = [1, 4, 2, 0x19, 0x2A, 0] + [UInt8](repeating: 0, count: 8)
    #expect(throws: JournalCodingError.tooLong(0xFFFF_FFFF)) {
      try StoredOperation(decoding: head + [0xFF, 0xFF, 0xFF, 0xFF, 1])
    }
    #expect(throws: JournalCodingError.truncated) {
      try StoredOperation(decoding: head + [2, 0, 0, 0, 1])
    }
  }

  @Test func anotherVersionIsNamed() {
    let error = JournalCodingError.unsupportedVersion(2)
    #expect(throws: error) { try StoredOperation(decoding: [2]) }
    #expect(throws: error) { try StoredMark(decoding: [2]) }
    #expect(throws: error) { try JournalCoding.decode([2]) }
    #expect("\(error)".contains("use the version of the library that wrote it"))
  }

  @Test func aNameFromLaterIsNamed() throws {
    var encoded = JournalCoding.encode(.succeeded(.probed))
    encoded[6] = UInt8(ascii: "q")
    #expect(throws: JournalCodingError.unknownCase(of: "Confirmation", "\"qrobed\"")) {
      try JournalCoding.decode(encoded)
    }
  }

  @Test(arguments: ["", "#", "#+5", "#05", "#-0", "#9223372036854775808", String(repeating: "x", count: 129)])
  func whatNamesNoOperationIsRefused(text: String) {
    var encoded = JournalCoding.encode(.notSent(.superseded(by: OperationID(OperationNumber(rawValue: 5)))))
    encoded.removeLast(6)
    var writer = ByteWriter()
    writer.put(text: text)
    #expect { try JournalCoding.decode(encoded + writer.bytes) } throws: { error in
      if case JournalCodingError.malformed = error { true } else { false }
    }
  }

  @Test func anExpandedUUIDIsTheSame() throws {
    let short = BluetoothUUID(0x2A19)
    let plain = StoredOperation(.read(Characteristic(short)))
    let expanded = StoredOperation(.read(Characteristic(short.expanded)))
    #expect(try plain.encoded() == expanded.encoded())
    #expect(plain.fingerprint == expanded.fingerprint)
    var writer = ByteWriter()
    for part: [UInt8] in [[1, 3, 16], short.expanded.encoded()] { for byte in part { writer.put(byte) } }
    #expect(throws: JournalCodingError.malformed("a short UUID in 16 bytes")) {
      try StoredOperation(decoding: writer.bytes)
    }
  }

  // MARK: What cannot be recorded

  @Test func aClosureCannotBeRecorded() {
    let closure = Probe(.closure(ProbeClosure(0)))
    #expect(!closure.isLasting)
    #expect(Probe.app.isLasting && Probe.named("a").isLasting)
    let operation = StoredOperation(.discover, .verified(by: closure))
    #expect(throws: JournalCodingError.notLasting) { try operation.encoded() }
    #expect(operation.fingerprint.count == 32)
    #expect(throws: JournalCodingError.notLasting) { try StoredOperation(decoding: [1, 2, 3, 4]) }
  }

  @Test func theLongestValueIsRecordedAndALongerOneIsNot() throws {
    var operation = StoredOperation(.write(.batteryLevel, [UInt8](repeating: 1, count: 65_535)))
    #expect(try StoredOperation(decoding: operation.encoded()) == operation)
    operation.request = .write(.batteryLevel, [UInt8](repeating: 1, count: 65_536))
    #expect(throws: JournalCodingError.tooLong(65_536)) { try operation.encoded() }
    operation.request = .discover
    operation.options.lane = Lane(String(repeating: "ü", count: 32_768))
    #expect(throws: JournalCodingError.tooLong(65_536)) { try operation.encoded() }
  }

  @Test func aLongMessageIsCutBetweenCharacters() throws {
    let message = "x" + String(repeating: "ü", count: 3_000)
    let long = JournalStoreError(.system, message, isCertain: false)
    let kept = JournalStoreError(.system, String(message.prefix(2_048)), isCertain: false)
    #expect(kept.message.utf8.count == 4_095)
    #expect(
      try JournalCoding.decode(JournalCoding.encode(.notSent(.storeFailed(long))))
        == .notSent(.storeFailed(kept)))
  }

  // MARK: Redaction and fingerprints

  @Test func nothingOfAValueIsLeftAfterRedaction() throws {
    let secret: [UInt8] = Array("secret".utf8)
    let requests: [GATTRequest] = [
      .write(.batteryLevel, secret), .writeLong(.batteryLevel, secret),
      .writeWithoutResponse(.batteryLevel, secret),
      .writeReliably([ReliableWrite(.deviceName, secret), ReliableWrite(.batteryLevel, secret)]),
    ]
    let emptied: [GATTRequest] = [
      .write(.batteryLevel, []), .writeLong(.batteryLevel, []), .writeWithoutResponse(.batteryLevel, []),
      .writeReliably([ReliableWrite(.deviceName, []), ReliableWrite(.batteryLevel, [])]),
    ]
    for (request, empty) in zip(requests, emptied) {
      var operation = StoredOperation(request, .verified(by: .value(of: .deviceName, is: secret)))
      operation.options.isSensitive = true
      operation.options.lane = "door"
      var expected = operation
      expected.request = empty
      expected.idempotency = .verified(by: .value(of: .deviceName, is: []))
      #expect(operation.redacted() == expected)
    }
    let read = StoredOperation(.read(.batteryLevel), .verified(by: .named("secret")))
    #expect(read.redacted() == read)
  }

  @Test func theFingerprintIsOfRequestAndTagAlone() {
    let write = StoredOperation(.write(.batteryLevel, [1, 2]))
    var other = write
    other.options.lane = "door"
    other.deadline = ExpiryInstant(bootTime: 1, wall: 2)
    other.bootID = "boot"
    #expect(other.fingerprint == write.fingerprint)
    let different = [
      StoredOperation(.write(.batteryLevel, [1, 3])), StoredOperation(.writeLong(.batteryLevel, [1, 2])),
      StoredOperation(.write(.deviceName, [1, 2])),
      StoredOperation(.write(.batteryLevel, [1, 2]), .idempotent),
    ]
    #expect(Set(different.map(\.fingerprint)).union([write.fingerprint]).count == 5)
  }
}

extension StoredOperation {
  init(_ request: GATTRequest, _ idempotency: Idempotency = .nonIdempotent) {
    self.init(request: request, idempotency: idempotency, options: .plain, deadline: nil, bootID: nil)
  }
}
