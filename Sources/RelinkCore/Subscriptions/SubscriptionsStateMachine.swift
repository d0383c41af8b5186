/// The name of one consumer of a characteristic's values.
package struct ConsumerID: RawRepresentable, Hashable, Comparable, Sendable {
  /// The number; later consumers have higher ones.
  package var rawValue: UInt64

  /// Makes a consumer ID from its number.
  package init(rawValue: UInt64) { self.rawValue = rawValue }

  /// Whether one consumer came before another.
  package static func < (left: ConsumerID, right: ConsumerID) -> Bool { left.rawValue < right.rawValue }
}

/// Which characteristics are to be notified, for whom, and how far that has come on the link that is up.
///
/// Consumers outlive links; groups live with one. A group is one Client Characteristic Configuration descriptor, and
/// at most one request concerns it at a time, so that start and stop of it never overlap:
///
/// ```
///            request            answer             no consumer left, request
///  unarmed ──────────► arming ─────────► armed ─────────────────────────────► disarming ──► (gone)
///     ▲                  │ error: its consumers fail, the others are not concerned              │
///     │                  ▼                                                                      │
///     │                (gone)                                    a consumer came meanwhile      │
///     └─────────────────────────────────────────────────────────────────────────────────────────┘
/// ```
///
/// A table that is learnt anew, and a loss where the platform keeps subscriptions, leave groups unarmed that the device
/// may still have armed: those are armed again, or disarmed where nobody wants them any more.
package struct SubscriptionsStateMachine: Sendable {
  private struct Consumer: Hashable {
    var id: ConsumerID
    /// The name that the consumer gave.
    var name: Characteristic
    /// The unambiguous name on the link that is up.
    var group: Characteristic?
    /// Whether values may have been missed since the last one that it was given.
    var hasGap = false
  }

  private enum Progress: Hashable {
    case unarmed
    case arming(RequestID)
    case armed
    case disarming(RequestID)
  }

  private struct Group: Hashable {
    var name: Characteristic
    var progress: Progress
    /// Whether the device may still have it armed from before its progress began.
    var wasArmed = false

    var mayBeArmed: Bool { wasArmed || progress != .unarmed }
  }

  private var consumers: [Consumer] = []
  private var groups: [Group] = []
  private var table: [DiscoveredService]?
  /// What a platform that keeps subscriptions by itself may have armed from the link before.
  private var kept: [Group] = []

  /// Makes a machine without consumers.
  package init() {}

  /// Whether anybody wants values.
  package var hasConsumers: Bool { !consumers.isEmpty }

  /// Whether every group that has a consumer is armed.
  package var isRestored: Bool {
    groups.allSatisfy { $0.progress == .armed || !hasConsumer($0.name) }
  }

  // MARK: Consumers

  /// What follows for a consumer from the state of the link.
  package enum Admission: Hashable, Sendable {
    /// It is kept; a request may be due.
    case kept
    /// The device has no such characteristic.
    case notFound
  }

  /// A consumer wants the values of a characteristic.
  package mutating func consumerAdded(_ id: ConsumerID, of name: Characteristic) -> Admission {
    var consumer = Consumer(id: id, name: name)
    if let table {
      guard let found = table.resolve(name) else { return .notFound }
      consumer.group = found.name
      if !groups.contains(where: { $0.name == found.name }) {
        groups.append(Group(name: found.name, progress: .unarmed))
      }
    }
    consumers.append(consumer)
    return .kept
  }

  /// A consumer has gone.
  package mutating func consumerRemoved(_ id: ConsumerID) {
    consumers.removeAll { $0.id == id }
    forgetUnwantedGroups()
  }

  /// The session has ended: nobody gets values any more.
  ///
  /// - Returns: the consumers that were there.
  package mutating func sessionEnded() -> [ConsumerID] {
    defer { self = SubscriptionsStateMachine() }
    return consumers.map(\.id)
  }

  // MARK: Links

  /// The table of the link that is up has been learnt, or learnt again.
  ///
  /// `restoring`: whether the session has to arm the descriptors on this link.
  /// - Returns: the consumers whose characteristic the device does not have; they are gone.
  package mutating func tableLearnt(_ services: [DiscoveredService], restoring: Bool) -> [ConsumerID] {
    let isNewLink = table == nil
    if !isNewLink { markGaps() }
    let before = groups + (restoring ? [] : kept)
    table = services
    groups = []
    kept = []
    var missing: [ConsumerID] = []
    for index in consumers.indices {
      guard let found = services.resolve(consumers[index].name) else {
        missing.append(consumers[index].id)
        continue
      }
      consumers[index].group = found.name
      guard !groups.contains(where: { $0.name == found.name }) else { continue }
      let earlier = before.first { $0.name == found.name }
      // A table that changed on the link may have taken the descriptor with it.
      let isArmed = isNewLink && earlier?.progress == .armed
      groups.append(
        Group(
          name: found.name, progress: isArmed ? .armed : .unarmed, wasArmed: earlier?.mayBeArmed ?? false))
    }
    consumers.removeAll { missing.contains($0.id) }
    // What nobody wants any more is to be disarmed.
    for earlier in before where earlier.mayBeArmed && !groups.contains(where: { $0.name == earlier.name }) {
      guard services.resolve(earlier.name)?.name == earlier.name else { continue }
      groups.append(Group(name: earlier.name, progress: .unarmed, wasArmed: true))
    }
    return missing
  }

  /// The link is gone; what is wanted stays wanted.
  package mutating func linkLost() {
    markGaps()
    for index in consumers.indices { consumers[index].group = nil }
    if table != nil {
      // A write that was not answered may have reached the device or not.
      kept = groups.filter(\.mayBeArmed).map { group in
        Group(name: group.name, progress: group.progress == .armed ? .armed : .unarmed, wasArmed: true)
      }
    }
    groups = []
    table = nil
  }

  /// The request that is due, if there is one.
  package func nextRequest() -> GATTRequest? {
    for group in groups {
      switch group.progress {
      case .unarmed: return .setNotifying(group.name, hasConsumer(group.name))
      case .armed: if !hasConsumer(group.name) { return .setNotifying(group.name, false) }
      case .arming, .disarming: break
      }
    }
    return nil
  }

  /// The link took a request for a characteristic.
  package mutating func requestTaken(_ request: GATTRequest, as id: RequestID) {
    guard case .setNotifying(let name, let isOn) = request,
      let index = groups.firstIndex(where: { $0.name == name })
    else { return }
    groups[index].progress = isOn ? .arming(id) : .disarming(id)
  }

  /// The link will never take the request.
  ///
  /// - Returns: the consumers that fail with it; they are gone.
  package mutating func requestRefused(_ request: GATTRequest) -> [ConsumerID] {
    guard case .setNotifying(let name, _) = request else { return [] }
    return fail(name)
  }

  /// What an answer says about the descriptor that was written.
  package enum Answer: Hashable, Sendable {
    /// It was written.
    case done
    /// The device, or the link, will not have it written.
    case refused
    /// The link gave up, or broke: nothing is known about the next try, or the next link.
    case undecided
  }

  /// A request of the link that is up was answered.
  ///
  /// - Returns: nil for a request that is none of this machine's; otherwise the consumers that fail; they are gone.
  package mutating func answered(_ id: RequestID, _ answer: Answer) -> [ConsumerID]? {
    guard
      let index = groups.firstIndex(where: { $0.progress == .arming(id) || $0.progress == .disarming(id) })
    else { return nil }
    let name = groups[index].name
    var failed: [ConsumerID] = []
    switch (groups[index].progress, answer) {
    case (.arming, .done):
      groups[index].progress = .armed
      groups[index].wasArmed = true
    case (.arming, .refused):
      groups[index].progress = .unarmed
      failed = consumers.filter { $0.group == name }.map(\.id)
      consumers.removeAll { failed.contains($0.id) }
    case (.arming, .undecided):
      groups[index].progress = .unarmed
    case (.disarming, _), (.armed, _), (.unarmed, _):
      // A device that refuses to be disarmed is not asked again.
      groups[index].progress = .unarmed
      groups[index].wasArmed = false
    }
    forgetUnwantedGroups()
    return failed
  }

  // MARK: Values

  /// One consumer that a value goes to.
  package struct Recipient: Hashable, Sendable {
    /// The consumer.
    package var id: ConsumerID
    /// Whether values may have been missed before this one.
    package var isAfterGap: Bool
  }

  /// The device sent a value; also before the answer to the request that asked for it.
  package mutating func valueReceived(of name: Characteristic) -> [Recipient] {
    var recipients: [Recipient] = []
    for index in consumers.indices where consumers[index].group == name {
      recipients.append(Recipient(id: consumers[index].id, isAfterGap: consumers[index].hasGap))
      consumers[index].hasGap = false
    }
    return recipients
  }

  // MARK: Parts

  private func hasConsumer(_ name: Characteristic) -> Bool {
    consumers.contains { $0.group == name }
  }

  /// What the device sends until the descriptors are armed again, nobody receives.
  private mutating func markGaps() {
    for index in consumers.indices {
      if let name = consumers[index].group, wasStarted(name) { consumers[index].hasGap = true }
    }
  }

  private func wasStarted(_ name: Characteristic) -> Bool {
    groups.contains { $0.name == name && $0.progress != .unarmed }
  }

  /// Forgets the groups that nobody wants and that the device need not be told about.
  private mutating func forgetUnwantedGroups() {
    let wanted = consumers.compactMap(\.group)
    groups.removeAll { !$0.mayBeArmed && !wanted.contains($0.name) }
  }

  private mutating func fail(_ name: Characteristic) -> [ConsumerID] {
    let failed = consumers.filter { $0.group == name }.map(\.id)
    consumers.removeAll { $0.group == name }
    groups.removeAll { $0.name == name }
    return failed
  }
}
