import BluetoothWire

@testable import RelinkCore

/// Draws values of everything that a journal row can hold, with the ends of each range among them.
struct StoredSamples {
  var generator: SplitMix

  init(seed: UInt64) { generator = SplitMix(seed: seed) }

  // MARK: Parts

  mutating func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &generator) == 0 }

  mutating func number<Number: FixedWidthInteger>(_ type: Number.Type = Number.self) -> Number {
    switch Int.random(in: 0..<6, using: &generator) {
    case 0: Number.min
    case 1: Number.max
    case 2: 0
    case 3: 1
    default: Number.random(in: .min ... .max, using: &generator)
    }
  }

  mutating func bytes() -> [UInt8] {
    let count = [0, 1, 20, 512].randomElement(using: &generator) ?? 0
    return (0..<count).map { _ in number() }
  }

  mutating func text() -> String {
    ["", "a", "door 3", "Türe", "\u{0}\n\"", "🔋", String(repeating: "x", count: 300)]
      .randomElement(using: &generator) ?? ""
  }

  mutating func optional<Value>(_ value: Value) -> Value? { chance(3) ? nil : value }

  mutating func uuid() -> BluetoothUUID {
    switch Int.random(in: 0..<4, using: &generator) {
    case 0: BluetoothUUID(number(UInt16.self))
    case 1: BluetoothUUID(number(UInt16.self)).expanded
    case 2: BluetoothUUID(number(UInt32.self))
    default: BluetoothUUID(number(), number())
    }
  }

  mutating func characteristic() -> Characteristic {
    let service = uuid()
    return Characteristic(uuid(), in: optional(service), occurrence: chance(2) ? 0 : number())
  }

  mutating func operationID() -> OperationID {
    let number = OperationID(OperationNumber(rawValue: number()))
    return chance(2) ? number : OperationID(text()) ?? number
  }

  mutating func timestamp() -> Timestamp {
    Timestamp(monotonic: MonotonicInstant(nanoseconds: number()), bootTime: number(), wall: number())
  }

  mutating func storeError() -> JournalStoreError {
    JournalStoreError(JournalStoreError.Code(rawValue: text()), text(), isCertain: chance(2))
  }

  mutating func expiry() -> ExpiryInstant? { optional(ExpiryInstant(bootTime: number(), wall: number())) }

  // MARK: Every case

  mutating func requests() -> [GATTRequest] {
    [
      .exchangeMTU, .discover, .read(characteristic()), .write(characteristic(), bytes()),
      .writeLong(characteristic(), bytes()), .writeWithoutResponse(characteristic(), bytes()),
      .writeReliably([]),
      .writeReliably([ReliableWrite(characteristic(), bytes()), ReliableWrite(characteristic(), bytes())]),
      .setNotifying(characteristic(), true), .setNotifying(characteristic(), false),
    ]
  }

  mutating func tags() -> [Idempotency] {
    [
      .idempotent, .nonIdempotent, .verified(by: .app), .verified(by: .named(text())),
      .verified(by: .value(of: characteristic(), is: bytes())),
    ]
  }

  mutating func options() -> OperationOptions {
    var options = OperationOptions()
    options.offerBefore = expiry()
    options.lane = optional(Lane(text()))
    options.priority = chance(3) ? .low : chance(2) ? .normal : .high
    options.supersedes = optional(SupersedingKey(text()))
    options.onExpiry = chance(2) ? .keepLink : .dropLink
    options.ifUnavailable = chance(2) ? .wait : .fail
    options.continuity = chance(2) ? .none : .unbroken
    options.security = securityLevels.randomElement(using: &generator) ?? .none
    options.durability = chance(2) ? .inMemory : .durable
    options.isSensitive = chance(2)
    return options
  }

  /// One for each pair of request and tag.
  mutating func operations() -> [StoredOperation] {
    var operations: [StoredOperation] = []
    for request in requests() {
      for tag in tags() {
        operations.append(
          StoredOperation(
            request: request, idempotency: tag, options: options(), deadline: expiry(),
            bootID: optional(text())
          ))
      }
    }
    return operations
  }

  mutating func mark() -> StoredMark {
    StoredMark(
      generation: Generation(rawValue: number()), at: timestamp(), offers: number(), bootID: optional(text()))
  }

  mutating func refusals() -> [GATTRefusal] {
    [
      .characteristicNotFound, .cannotNotify, .valueTooLong(limit: number()), .calledOff, .prepareMismatch,
      .linkClosed, .system(number()), .noValues, .notSupported,
    ]
  }

  mutating func notSentReasons() -> [NotSentReason] {
    [
      .disconnected, .ended, .deadline, .cancelled, .notReconnecting, .attemptsExhausted,
      .journalFull(limit: number()), .linkLost, .expired, .superseded(by: operationID()), .continuityBroken,
      .storeFailed(storeError()), .mixedDurability, .conflictingID, .userActionNeeded,
    ] + refusals().map { .refused($0) } + adapterStates.map { .adapterUnavailable($0) }
      + securityLevels.map { .securityTooLow($0) }
  }

  mutating func causes() -> [Doubt.Cause] {
    [
      .deadline, .cancelled, .disconnected, .ended, .attemptsExhausted, .notReconnecting, .malformedAnswer,
      .expired, .superseded(by: operationID()), .continuityBroken, .poisonous, .probeInconclusive,
      .probeInterrupted, .processEnded, .storeFailed(storeError()), .userActionNeeded,
    ] + disconnectReasons.map { .linkLost($0) } + adapterStates.map { .adapterUnavailable($0) }
      + securityLevels.map { .securityTooLow($0) }
  }

  mutating func outcomes() -> [Outcome<Confirmation>] {
    let rejection = Rejection(code: ATTErrorCode(rawValue: number()), provesNotApplied: chance(2))
    var outcomes: [Outcome<Confirmation>] = [
      .succeeded(.acknowledged), .succeeded(.handedOver), .succeeded(.probed), .succeeded(.resolved),
      .rejected(rejection),
    ]
    outcomes += notSentReasons().map { .notSent($0) }
    for cause in causes() {
      outcomes.append(
        .indeterminate(
          Doubt(
            cause: cause, generation: Generation(rawValue: number()), offeredAt: timestamp(),
            offers: number(),
            lastPossibleEffect: optional(MonotonicInstant(nanoseconds: number())))))
    }
    return outcomes
  }
}

private let adapterStates: [AdapterState] = [.on, .off, .blocked, .suspended, .missing, .notPermitted]
private let securityLevels: [SecurityLevel] = [.none, .encrypted, .authenticated, .secureConnections]
private let disconnectReasons: [DisconnectReason] = [
  .requested, .notFound, .failedToEstablish, .supervisionTimeout, .remoteUserTerminated, .remoteLowResources,
  .remotePowerOff, .localHostTerminated, .linkLayerFault, .authenticationFailure, .keyMissing, .micFailure,
  .adapterOff, .adapterMissing, .notPermitted, .busy, .transactionTimeout, .protocolViolation, .setupFailed,
  .preparationTimeout, .refused, .operationExpired, .connectionParameters, .bondMissing, .pairingFailed,
  .securityTimeout, .adapterBlocked, .daemonStopped, .suspended, .channelInUse, .outOfSlots, .adapterStuck,
  .phantomLink, .wrongAddressType, .unknown,
]
