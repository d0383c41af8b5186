public import Relink

/// Deliveries one at a time, in the order that a test wants.
extension VirtualRadio {
  /// Holds deliveries back from now on at the moment at which they would arrive; they wait for the test.
  ///
  /// What is held survives the end of its link, as bytes do that a host has received and not yet read. A held request
  /// is not: the device of a lost link does not carry it out.
  ///
  /// - Parameter kinds: The kinds to hold; it takes the place of an earlier choice and releases nothing.
  public func hold(_ kinds: Set<DeliveryKind> = Set(DeliveryKind.allCases)) {
    state.withLock { $0.holding = kinds }
  }

  /// Holds nothing back any more, and releases what is held, in order.
  public func stopHolding() {
    let effects = state.withLock { state in
      state.holding = []
      defer { state.held = [] }
      return state.held.compactMap { state.release($0.payload) }
    }
    for effect in effects { post(effect) }
  }

  /// What is held, in the order in which it arrived.
  public var heldDeliveries: [HeldDelivery] { state.withLock { $0.held.map(\.delivery) } }

  /// Delivers what arrived first, in a job of its own.
  ///
  /// - Returns: What it was; nil where nothing is held.
  @discardableResult
  public func releaseNext() -> HeldDelivery? {
    guard let first = heldDeliveries.first else { return nil }
    release(first.id)
    return first
  }

  /// Delivers what is held under this name, in a job of its own, before or after anything else.
  ///
  /// - Parameter id: The name; nothing happens where it is not held.
  public func release(_ id: Int) {
    post(
      state.withLock { state in
        guard let index = state.held.firstIndex(where: { $0.id == id }) else { return nil }
        return state.release(state.held.remove(at: index).payload)
      })
  }

  /// Delivers a copy of what is held under this name; it stays held.
  ///
  /// - Parameter id: The name; nothing happens where it is not held.
  public func duplicate(_ id: Int) {
    post(
      state.withLock { state in
        state.held.first { $0.id == id }.flatMap { state.release($0.payload) }
      })
  }

  /// Makes what is held under this name vanish.
  ///
  /// - Parameter id: The name; nothing happens where it is not held.
  public func drop(_ id: Int) {
    state.withLock { $0.held.removeAll { $0.id == id } }
  }

  private func post(_ effect: RadioState.Effect?) {
    guard let effect else { return }
    executor.post { [weak self] in self?.perform([effect]) }
  }

  /// Something that a transport with a fault of its own says too late, of a link or a dial that is over.
  @nonexhaustive
  public enum StaleDelivery: Sendable {
    /// An answer.
    case answered(LinkID, RequestID, Result<GATTAnswer, GATTFailure>)
    /// A value.
    case value(LinkID, [UInt8], of: Characteristic)
    /// The word that the table changed.
    case tableChanged(LinkID)
    /// The word that the link takes requests again.
    case writable(LinkID)
    /// The word that the link is gone.
    case closed(LinkID, LinkLoss, inDoubt: [RequestID])
    /// The word that a dial has ended without a link.
    case attemptFailed(AttemptID, LinkLoss)
  }

  /// Tells a device's handler something that belongs to an older life, whatever the radio knows, in a job of its own.
  ///
  /// - Parameters:
  ///   - delivery: What to say; ``linkIDs(of:)`` has the names of earlier links.
  ///   - device: The device.
  public func deliverStale(_ delivery: StaleDelivery, to device: DeviceID) {
    executor.post { [weak self] in
      guard let self, let handler = self.handler(of: device) else { return }
      switch delivery {
      case .answered(let link, let request, let answer): handler.link(link, answered: request, with: answer)
      case .value(let link, let bytes, let characteristic):
        handler.link(link, value: bytes, of: characteristic, receivedAt: self.executor.timestamp())
      case .tableChanged(let link): handler.linkTableChanged(link)
      case .writable(let link): handler.linkWritable(link)
      case .closed(let link, let loss, let inDoubt): handler.link(link, closed: loss, inDoubt: inDoubt)
      case .attemptFailed(let attempt, let loss): handler.attemptFailed(attempt, loss)
      }
    }
  }
}
