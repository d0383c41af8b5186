internal import Relink

extension AuditRecord {
  /// The record of a transition.
  init(_ event: JournalEvent, of device: DeviceID, owner: String, includesValues: Bool) {
    let operation = event.operation
    var fields = [
      AuditField("wall", event.at.rfc3339), AuditField("boot", event.at.bootTime),
      AuditField("monotonic", event.at.monotonic.nanoseconds), AuditField("device", "\(device)"),
      AuditField("owner", owner), AuditField("operation", "\(operation.id)"),
    ]
    fields += Self.fields(of: event.change)
    fields += Self.fields(of: operation)
    fields += Self.fields(of: operation.request, isSensitive: operation.isSensitive, includesValues)
    self.init(.transition, fields)
  }

  // MARK: What happened

  private static func fields(of change: JournalEvent.Change) -> [AuditField] {
    func named(_ name: String, _ fields: AuditField...) -> [AuditField] {
      [AuditField("change", name)] + fields
    }
    switch change {
    case .recorded: return named("recorded")
    case .recovered: return named("recovered")
    case .joined: return named("joined")
    case .marked: return named("marked")
    case .offered(let generation, let number):
      return named("offered", AuditField("generation", generation.rawValue), AuditField("number", number))
    case .notTaken: return named("notTaken")
    case .superseded(let younger): return named("superseded", AuditField("by", "\(younger)"))
    case .inDoubt(let reason): return named("inDoubt", AuditField("lostTo", reason.rawValue))
    case .probing(let generation):
      return named("probing", AuditField("generation", generation.rawValue))
    case .judged(let verdict, let judge):
      return named("judged", AuditField("verdict", verdict.rawValue), AuditField("by", judge))
    case .settled(let outcome): return named("settled") + Self.fields(of: outcome)
    case .delivered: return named("delivered")
    case .storeFailed(let error): return named("storeFailed") + Self.fields(of: error)
    }
  }

  private static func fields(of outcome: Outcome<Confirmation>) -> [AuditField] {
    switch outcome {
    case .succeeded(let confirmation):
      return [AuditField("outcome", "succeeded"), AuditField("confirmation", confirmation.rawValue)]
    case .rejected(let rejection):
      return [
        AuditField("outcome", "rejected"), AuditField("attError", rejection.code.rawValue),
        AuditField("error", "\(rejection.code)"),
        AuditField("provesNotApplied", .flag(rejection.provesNotApplied)),
      ]
    case .notSent(let reason):
      return [AuditField("outcome", "notSent")] + Self.fields(of: reason)
    case .indeterminate(let doubt):
      var fields = [AuditField("outcome", "indeterminate")] + Self.fields(of: doubt.cause)
      fields += [
        AuditField("doubtGeneration", doubt.generation.rawValue),
        AuditField("doubtOfferedAt", doubt.offeredAt.rfc3339), AuditField("doubtOffers", doubt.offers),
      ]
      if let last = doubt.lastPossibleEffect {
        fields.append(AuditField("doubtLastPossibleEffect", last.nanoseconds))
      }
      return fields
    }
  }

  private static func why(_ name: String, _ fields: AuditField...) -> [AuditField] {
    [AuditField("why", name)] + fields
  }

  private static func fields(of reason: NotSentReason) -> [AuditField] {
    switch reason {
    case .disconnected: return why("disconnected")
    case .ended: return why("ended")
    case .deadline: return why("deadline")
    case .cancelled: return why("cancelled")
    case .notReconnecting: return why("notReconnecting")
    case .attemptsExhausted: return why("attemptsExhausted")
    case .refused(let refusal): return why("refused") + fields(of: refusal)
    case .journalFull(let limit): return why("journalFull", AuditField("limit", limit))
    case .linkLost: return why("linkLost")
    case .expired: return why("expired")
    case .superseded(let younger): return why("superseded", AuditField("supersededBy", "\(younger)"))
    case .adapterUnavailable(let state):
      return why("adapterUnavailable", AuditField("adapter", state.rawValue))
    case .continuityBroken: return why("continuityBroken")
    case .securityTooLow(let level): return why("securityTooLow", AuditField("securityLevel", level.rawValue))
    case .storeFailed(let error): return why("storeFailed") + fields(of: error)
    case .mixedDurability: return why("mixedDurability")
    case .conflictingID: return why("conflictingID")
    case .userActionNeeded: return why("userActionNeeded")
    }
  }

  private static func fields(of cause: Doubt.Cause) -> [AuditField] {
    switch cause {
    case .linkLost(let reason): return why("linkLost", AuditField("lostTo", reason.rawValue))
    case .deadline: return why("deadline")
    case .cancelled: return why("cancelled")
    case .disconnected: return why("disconnected")
    case .ended: return why("ended")
    case .attemptsExhausted: return why("attemptsExhausted")
    case .notReconnecting: return why("notReconnecting")
    case .malformedAnswer: return why("malformedAnswer")
    case .expired: return why("expired")
    case .superseded(let younger): return why("superseded", AuditField("supersededBy", "\(younger)"))
    case .adapterUnavailable(let state):
      return why("adapterUnavailable", AuditField("adapter", state.rawValue))
    case .continuityBroken: return why("continuityBroken")
    case .securityTooLow(let level): return why("securityTooLow", AuditField("securityLevel", level.rawValue))
    case .poisonous: return why("poisonous")
    case .probeInconclusive: return why("probeInconclusive")
    case .probeInterrupted: return why("probeInterrupted")
    case .processEnded: return why("processEnded")
    case .userActionNeeded: return why("userActionNeeded")
    case .storeFailed(let error): return why("storeFailed") + fields(of: error)
    }
  }

  private static func fields(of refusal: GATTRefusal) -> [AuditField] {
    switch refusal {
    case .characteristicNotFound: return [AuditField("refusal", "characteristicNotFound")]
    case .cannotNotify: return [AuditField("refusal", "cannotNotify")]
    case .valueTooLong(let limit):
      return [AuditField("refusal", "valueTooLong"), AuditField("limit", limit)]
    case .noValues: return [AuditField("refusal", "noValues")]
    case .notSupported: return [AuditField("refusal", "notSupported")]
    case .calledOff: return [AuditField("refusal", "calledOff")]
    case .prepareMismatch: return [AuditField("refusal", "prepareMismatch")]
    case .linkClosed: return [AuditField("refusal", "linkClosed")]
    case .system(let number): return [AuditField("refusal", "system"), AuditField("errno", number)]
    }
  }

  private static func fields(of error: JournalStoreError) -> [AuditField] {
    [
      AuditField("store", error.code.rawValue), AuditField("message", error.message),
      AuditField("isCertain", .flag(error.isCertain)),
    ]
  }

  // MARK: The operation

  private static func fields(of operation: JournaledOperation) -> [AuditField] {
    var fields = [AuditField("state", operation.state.rawValue), AuditField("offers", operation.offers)]
    if let offer = operation.lastOffer {
      fields += [
        AuditField("lastGeneration", offer.generation.rawValue),
        AuditField("lastOfferedAt", offer.at.rfc3339),
      ]
      if let last = offer.lastPossibleEffect {
        fields.append(AuditField("lastPossibleEffect", last.nanoseconds))
      }
      if let reason = offer.lostTo { fields.append(AuditField("lastLostTo", reason.rawValue)) }
      if !offer.evidence.isEmpty {
        fields.append(
          AuditField("lastEvidence", offer.evidence.map(\.description).joined(separator: "; ")))
      }
    }
    fields += Self.fields(of: operation.idempotency)
    fields.append(AuditField("isDurable", .flag(operation.durability == .durable)))
    if operation.isRecovered { fields.append(AuditField("isRecovered", .flag(true))) }
    if let lane = operation.lane { fields.append(AuditField("lane", lane.name)) }
    if let key = operation.supersedes { fields.append(AuditField("supersedes", key.name)) }
    return fields
  }

  private static func fields(of tag: Idempotency) -> [AuditField] {
    switch tag {
    case .idempotent: return [AuditField("tag", "idempotent")]
    case .nonIdempotent: return [AuditField("tag", "nonIdempotent")]
    case .verified(let probe):
      var fields = [AuditField("tag", "verified")]
      switch probe.kind {
      case .app: fields.append(AuditField("probe", "app"))
      // Without the value that is looked for: it is that of the request as a rule.
      case .value(let characteristic, _):
        fields += [AuditField("probe", "value"), AuditField("probeOf", "\(characteristic)")]
      case .named(let name): fields += [AuditField("probe", "named"), AuditField("probeName", name)]
      case .closure: fields.append(AuditField("probe", "closure"))
      }
      return fields
    }
  }

  // MARK: The request

  /// The longest value of an attribute (Core Specification Vol 3 Part F 3.2.9).
  private static let valueLimit = 512

  private static func fields(
    of request: GATTRequest, isSensitive: Bool, _ includesValues: Bool
  ) -> [AuditField] {
    let (name, bytes): (String, [UInt8]?) =
      switch request {
      case .exchangeMTU: ("exchangeMTU", nil)
      case .discover: ("discover", nil)
      case .read: ("read", nil)
      case .write(_, let value): ("write", value)
      case .writeLong(_, let value): ("writeLong", value)
      case .writeReliably(let writes): ("writeReliably", writes.flatMap(\.value))
      case .writeWithoutResponse(_, let value): ("writeWithoutResponse", value)
      case .setNotifying(_, let isOn): ("setNotifying", [isOn ? 1 : 0])
      }
    var fields = [AuditField("request", name)]
    let characteristics = request.characteristics.map { "\($0)" }
    if !characteristics.isEmpty {
      fields.append(AuditField("characteristic", characteristics.joined(separator: " ")))
    }
    guard !isSensitive else { return fields + [AuditField("digest", "redacted")] }
    if let bytes { fields.append(AuditField("length", bytes.count)) }
    fields.append(AuditField("digest", digest(of: request, name, bytes ?? []).hexadecimal))
    if includesValues, let bytes {
      fields.append(AuditField("value", .code(Array(bytes.prefix(valueLimit)).hexadecimal)))
    }
    return fields
  }

  /// The digest of a request, as the documentation of the log states it.
  private static func digest(of request: GATTRequest, _ name: String, _ bytes: [UInt8]) -> [UInt8] {
    var text = Array(name.utf8) + [0]
    if case .writeReliably(let writes) = request {
      // With lengths: otherwise where one value ends and the next name begins would be a matter of taste.
      for write in writes {
        text +=
          Array("\(write.characteristic)".utf8) + [0] + Array("\(write.value.count)".utf8) + [0] + write.value
      }
    } else {
      text += Array((request.characteristic?.description ?? "").utf8) + [0] + bytes
    }
    return SHA256.digest(of: text)
  }
}
