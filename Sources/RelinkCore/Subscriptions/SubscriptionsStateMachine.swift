/// The name of one consumer of a characteristic's values.
public struct ConsumerID: RawRepresentable, Hashable, Comparable, Sendable {
  /// The number; later consumers have higher ones.
  public var rawValue: UInt64

  /// Makes a consumer ID from its number.
  public init(rawValue: UInt64) { self.rawValue = rawValue }

  /// Whether one consumer came before another.
  public static func < (left: ConsumerID, right: ConsumerID) -> Bool { left.rawValue < right.rawValue }
}

/// Which characteristics are to be notified, for whom, and how far that has come on the link that is up.
///
/// Consumers outlive links; groups live with one. A group is one Client Characteristic Configuration descriptor, and
/// at most one request concerns it at a time, so that start and stop of it never overlap:
///
/// ```
///            request            answer             no consumer left, request
///  unarmed ──────────► arming ─────────► armed ─────────────────────────────► disarming ──► (gone)
///                        │ error: its consumers fail, the others are not concerned              │
///                        ▼                                   a consumer came meanwhile: unarmed ◄┘
///                      (gone)
/// ```
public struct SubscriptionsStateMachine: Sendable {
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
  }

  private var consumers: [Consumer] = []
  private var groups: [Group] = []
  private var table: [DiscoveredService]?
  /// What the platform keeps armed by itself from link to link.
  private var keptByPlatform: [Characteristic] = []

  /// Makes a machine without consumers.
  public init() {}

  /// Whether anybody wants values.
  public var hasConsumers: Bool { !consumers.isEmpty }

  /// Whether every group that has a consumer is armed.
  public var isRestored: Bool {
    groups.allSatisfy { $0.progress == .armed || !hasConsumer($0.name) }
  }

  // MARK: Consumers

  /// What follows for a consumer from the state of the link.
  public enum Admission: Hashable, Sendable {
    /// It is kept; a request may be due.
    case kept
    /// The device has no such characteristic.
    case notFound
  }

  /// A consumer wants the values of a characteristic.
  public mutating func consumerAdded(_ id: ConsumerID, of name: Characteristic) -> Admission {
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
  public mutating func consumerRemoved(_ id: ConsumerID) {
    consumers.removeAll { $0.id == id }
    let wanted = consumers.compactMap(\.group)
    groups.removeAll { $0.progress == .unarmed && !wanted.contains($0.name) }
  }

  /// The session has ended: nobody gets values any more.
  ///
  /// - Returns: the consumers that were there.
  public mutating func sessionEnded() -> [ConsumerID] {
    defer { self = SubscriptionsStateMachine() }
    return consumers.map(\.id)
  }

  // MARK: Links

  /// The table of the link that is up has been learnt, or learnt again.
  ///
  /// `restoring`: whether the session has to arm the descriptors on this link.
  /// - Returns: the consumers whose characteristic the device does not have; they are gone.
  public mutating func tableLearnt(_ services: [DiscoveredService], restoring: Bool) -> [ConsumerID] {
    table = services
    groups = []
    var missing: [ConsumerID] = []
    for index in consumers.indices {
      guard let found = services.resolve(consumers[index].name) else {
        missing.append(consumers[index].id)
        continue
      }
      consumers[index].group = found.name
      guard !groups.contains(where: { $0.name == found.name }) else { continue }
      let isKept = !restoring && keptByPlatform.contains(found.name)
      groups.append(Group(name: found.name, progress: isKept ? .armed : .unarmed))
    }
    consumers.removeAll { missing.contains($0.id) }
    return missing
  }

  /// The link is gone; what is wanted stays wanted.
  public mutating func linkLost() {
    for index in consumers.indices {
      if let name = consumers[index].group, wasStarted(name) { consumers[index].hasGap = true }
      consumers[index].group = nil
    }
    groups = []
    table = nil
  }

  /// The request that is due, if there is one.
  public func nextRequest() -> GATTRequest? {
    for group in groups {
      switch group.progress {
      case .unarmed: return .setNotifying(group.name, true)
      case .armed: if !hasConsumer(group.name) { return .setNotifying(group.name, false) }
      case .arming, .disarming: break
      }
    }
    return nil
  }

  /// The link took a request for a characteristic.
  public mutating func requestTaken(_ request: GATTRequest, as id: RequestID) {
    guard case .setNotifying(let name, let isOn) = request,
      let index = groups.firstIndex(where: { $0.name == name })
    else { return }
    groups[index].progress = isOn ? .arming(id) : .disarming(id)
  }

  /// The link will never take the request.
  ///
  /// - Returns: the consumers that fail with it; they are gone.
  public mutating func requestRefused(_ request: GATTRequest) -> [ConsumerID] {
    guard case .setNotifying(let name, _) = request else { return [] }
    return fail(name)
  }

  /// A request of the link that is up was answered.
  ///
  /// - Returns: nil for a request that is none of this machine's; otherwise the consumers that fail; they are gone.
  public mutating func answered(_ id: RequestID, succeeded: Bool) -> [ConsumerID]? {
    guard
      let index = groups.firstIndex(where: { $0.progress == .arming(id) || $0.progress == .disarming(id) })
    else { return nil }
    let name = groups[index].name
    switch groups[index].progress {
    case .arming where succeeded:
      groups[index].progress = .armed
      if !keptByPlatform.contains(name) { keptByPlatform.append(name) }
    case .arming:
      return fail(name)
    case .disarming, .armed, .unarmed:
      keptByPlatform.removeAll { $0 == name }
      if hasConsumer(name) { groups[index].progress = .unarmed } else { groups.remove(at: index) }
    }
    return []
  }

  // MARK: Values

  /// One consumer that a value goes to.
  public struct Recipient: Hashable, Sendable {
    /// The consumer.
    public var id: ConsumerID
    /// Whether values may have been missed before this one.
    public var isAfterGap: Bool
  }

  /// The device sent a value; also before the answer to the request that asked for it.
  public mutating func valueReceived(of name: Characteristic) -> [Recipient] {
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

  private func wasStarted(_ name: Characteristic) -> Bool {
    groups.contains { $0.name == name && $0.progress != .unarmed }
  }

  private mutating func fail(_ name: Characteristic) -> [ConsumerID] {
    let failed = consumers.filter { $0.group == name }.map(\.id)
    consumers.removeAll { $0.group == name }
    groups.removeAll { $0.name == name }
    return failed
  }
}
