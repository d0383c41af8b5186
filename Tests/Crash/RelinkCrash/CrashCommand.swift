package import Relink

/// What a device offers to a crash run, by the way in which a write to it may be repeated.
///
/// A write begins with the eight bytes of its number, so that the device can count it; where `verified` is read it gives
/// the last value that was written.
package struct CrashDevice: Sendable {
  package var nonIdempotent: Characteristic
  package var idempotent: Characteristic
  package var verified: Characteristic
  /// Nil where no probe with a name is to be tried, or no long or unanswered write.
  package var named: Characteristic?
  package var long: Characteristic?
  package var unanswered: Characteristic?
  /// Something to read meanwhile.
  package var status: Characteristic

  package init(
    nonIdempotent: Characteristic, idempotent: Characteristic, verified: Characteristic,
    named: Characteristic? = nil, long: Characteristic? = nil, unanswered: Characteristic? = nil,
    status: Characteristic
  ) {
    self.nonIdempotent = nonIdempotent
    self.idempotent = idempotent
    self.verified = verified
    self.named = named
    self.long = long
    self.unanswered = unanswered
    self.status = status
  }
}

/// One command of a crash run; everything about it follows from its number, so a process that knows nothing but the
/// number asks for the same as the one before.
package struct CrashCommand: Sendable {
  package enum Kind: String, CaseIterable, Sendable {
    case nonIdempotent
    case idempotent
    case verified
    case named
    case long
    case unanswered
  }

  /// Which kind of command follows which; a probe of the kind `named` counts on its period.
  private static let pattern: [Kind] = [
    .nonIdempotent, .nonIdempotent, .verified, .nonIdempotent, .idempotent, .nonIdempotent, .long,
    .nonIdempotent, .named, .nonIdempotent, .verified, .nonIdempotent, .nonIdempotent, .unanswered,
    .nonIdempotent, .idempotent, .nonIdempotent, .nonIdempotent, .verified, .nonIdempotent,
  ]
  /// How many probes with a name there are: two commands with the same one are far apart.
  private static let probeCount = 64

  package let number: Int
  package let kind: Kind

  package init(number: Int, on device: CrashDevice) {
    self.number = number
    let wanted = CrashCommand.pattern[number % CrashCommand.pattern.count]
    let isOffered =
      switch wanted {
      case .named: device.named != nil
      case .long: device.long != nil
      case .unanswered: device.unanswered != nil
      case .nonIdempotent, .idempotent, .verified: true
      }
    kind = isOffered ? wanted : .nonIdempotent
  }

  /// The number in what names the command.
  package static func number(of id: OperationID) -> Int? {
    let text = id.description
    return text.hasPrefix("command-") ? Int(text.dropFirst(8)) : nil
  }

  // MARK: Asking for it

  /// Asks for the command, in one of the ways that an app has.
  package func ask(_ session: DeviceSession, on device: CrashDevice) async throws(RelinkError) -> CrashOutcome
  {
    let options = WriteOptions(
      within: .never, allowsLong: kind == .long, durability: .durable,
      priority: number % 7 == 0 ? .high : .normal)
    let id = OperationID("command-\(number)")
    let (to, tag) = (target(on: device), idempotency(on: device))
    switch (number % 3, kind) {
    case (0, .unanswered):
      try await session.writeWithoutResponse(value, to: to, idempotency: tag, id: id, options: options)
    case (0, _):
      try await session.write(value, to: to, idempotency: tag, id: id, options: options)
    case (_, .unanswered):
      let request = WriteRequest.withoutResponse(value, to: to, idempotency: tag, id: id, options: options)
      return CrashOutcome(try await session.submit(request).outcome)
    default:
      let request = WriteRequest(value, to: to, idempotency: tag, id: id, options: options)
      return CrashOutcome(try await session.submit(request).outcome)
    }
    return CrashOutcome(word: .succeeded, detail: "")
  }

  private var value: [UInt8] {
    let tag = (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    return kind == .long ? tag + [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 120) : tag
  }

  private func target(on device: CrashDevice) -> Characteristic {
    switch kind {
    case .nonIdempotent: device.nonIdempotent
    case .idempotent: device.idempotent
    case .verified: device.verified
    case .named: device.named ?? device.verified
    case .long: device.long ?? device.nonIdempotent
    case .unanswered: device.unanswered ?? device.nonIdempotent
    }
  }

  private func idempotency(on device: CrashDevice) -> Idempotency {
    switch kind {
    case .nonIdempotent, .long, .unanswered: .nonIdempotent
    case .idempotent: .idempotent
    case .verified: .verified(by: .value(of: device.verified, is: value))
    case .named: .verified(by: .named(CrashCommand.probeName(number)))
    }
  }

  // MARK: Probes with a name

  private static func probeName(_ number: Int) -> String {
    "last-is-\(number / pattern.count % probeCount)"
  }

  /// The probes that the commands name: each knows the commands that it could be about.
  package static func probes(of device: CrashDevice) -> [String: Probe.Look] {
    guard let named = device.named else { return [:] }
    var probes: [String: Probe.Look] = [:]
    for position in 0..<probeCount {
      let name = probeName(position * pattern.count)
      probes[name] = { link in
        let value = try await link.read(named)
        guard value.count == 8 else { return .notApplied }
        let last = value.reversed().reduce(0) { $0 << 8 | Int($1) }
        return probeName(last) == name ? .applied : .notApplied
      }
    }
    return probes
  }
}
