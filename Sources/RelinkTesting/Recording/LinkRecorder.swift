public import Relink

/// Collects everything that a transport and its links deliver about one device, in the place of a session.
///
/// Register it with a transport. May be looked at on any thread.
public final class LinkRecorder: LinkHandler {
  /// One delivery.
  @nonexhaustive
  public enum Delivery: Hashable, Sendable {
    /// A link is up.
    case linkUp(LinkID, attempt: AttemptID?)
    /// A dial has ended without a link.
    case attemptFailed(AttemptID, LinkLoss)
    /// The adapter has changed its state.
    case adapterChanged(AdapterState)
    /// A request has its answer.
    case answered(LinkID, RequestID, Result<GATTAnswer, GATTFailure>)
    /// The device sent a value.
    case value(LinkID, [UInt8], of: Characteristic)
    /// The device changed its table.
    case tableChanged(LinkID)
    /// The link takes requests again.
    case writable(LinkID)
    /// The device wants more security for a request, which waits.
    case needs(LinkID, SecurityLevel)
    /// The link is secured.
    case secured(LinkID, SecurityLevel)
    /// The link could not be secured.
    case notSecured(LinkID, LinkLoss)
    /// Pairing asks the user; the recorder keeps who takes the answer.
    case asks(LinkID, PairingQuestion)
    /// The device was seen under another name.
    case seen(as: DeviceID, [Evidence])
    /// The link is gone.
    case closed(LinkID, LinkLoss, inDoubt: [RequestID])

    /// The link that it is about, if it is about one.
    public var link: LinkID? {
      switch self {
      case .linkUp(let link, _), .answered(let link, _, _), .value(let link, _, _), .tableChanged(let link),
        .writable(let link), .needs(let link, _), .secured(let link, _), .notSecured(let link, _),
        .asks(let link, _), .closed(let link, _, _):
        link
      case .attemptFailed, .adapterChanged, .seen: nil
      }
    }
  }

  private struct State {
    var deliveries: [Delivery] = []
    var link: (any Link)?
    /// How many calls into the transport are under way that must not deliver.
    var calls = 0
    var deliveriesInsideCalls = 0
    var responders: [PairingResponder] = []
  }

  private let state = Locked(State())

  /// Makes an empty recorder.
  public init() {}

  /// Everything that was delivered, in order.
  public var deliveries: [Delivery] { state.withLock { $0.deliveries } }

  /// The link that came up last and is not closed.
  public var link: (any Link)? { state.withLock { $0.link } }

  /// Answers the oldest question of a pairing that was not answered yet.
  ///
  /// - Parameter answer: The answer.
  /// - Returns: Whether there was such a question.
  @discardableResult
  public func answer(_ answer: PairingAnswer) -> Bool {
    let responder = state.withLock { $0.responders.isEmpty ? nil : $0.responders.removeFirst() }
    responder?(answer)
    return responder != nil
  }

  /// How many deliveries came inside a call that was made through ``calling(_:)``.
  public var deliveriesInsideCalls: Int { state.withLock { $0.deliveriesInsideCalls } }

  /// Makes a call into a transport or a link, and counts what it delivers before it returns, which is to be nothing.
  ///
  /// - Parameter call: The call.
  /// - Returns: What the call returns.
  public func calling<Value>(_ call: () -> Value) -> Value {
    state.withLock { $0.calls += 1 }
    defer { state.withLock { $0.calls -= 1 } }
    return call()
  }

  /// What a link delivered.
  ///
  /// - Parameter link: The link.
  /// - Returns: The deliveries, in order.
  public func deliveries(of link: LinkID) -> [Delivery] { deliveries.filter { $0.link == link } }

  /// The answers to a request, of which there is to be one at most.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - link: The link.
  /// - Returns: The answers, in order.
  public func answers(to request: RequestID, on link: LinkID) -> [Result<GATTAnswer, GATTFailure>] {
    deliveries.compactMap {
      if case .answered(link, request, let answer) = $0 { answer } else { nil }
    }
  }

  /// What a link was closed with, each time.
  ///
  /// - Parameter link: The link.
  /// - Returns: The losses with the requests in doubt, of which there is to be one at most.
  public func closings(of link: LinkID) -> [(loss: LinkLoss, inDoubt: [RequestID])] {
    deliveries.compactMap {
      if case .closed(link, let loss, let inDoubt) = $0 { (loss, inDoubt) } else { nil }
    }
  }

  /// The values that a link delivered.
  ///
  /// - Parameter link: The link.
  /// - Returns: The values, in order.
  public func values(of link: LinkID) -> [[UInt8]] {
    deliveries.compactMap { if case .value(link, let value, _) = $0 { value } else { nil } }
  }

  /// How a dial ended, each time: with the link that came up, or with the loss.
  ///
  /// - Parameter attempt: The dial.
  /// - Returns: The ends, of which there is to be one.
  public func ends(of attempt: AttemptID) -> [Result<LinkID, AttemptFailure>] {
    deliveries.compactMap {
      switch $0 {
      case .linkUp(let link, attempt): .success(link)
      case .attemptFailed(attempt, let loss): .failure(AttemptFailure(loss: loss))
      default: nil
      }
    }
  }

  /// How a dial failed.
  public struct AttemptFailure: Error, Hashable, Sendable {
    /// What the transport said.
    public var loss: LinkLoss
  }

  private func record(_ delivery: Delivery, _ change: (inout State) -> Void = { _ in }) {
    state.withLock { state in
      state.deliveries.append(delivery)
      if state.calls > 0 { state.deliveriesInsideCalls += 1 }
      change(&state)
    }
  }

  // MARK: - LinkHandler

  /// Records it.
  ///
  /// - Parameters:
  ///   - link: The link.
  ///   - attempt: The dial that brought it up.
  public func linkUp(_ link: any Link, attempt: AttemptID?) {
    record(.linkUp(link.id, attempt: attempt)) { $0.link = link }
  }

  /// Records it.
  ///
  /// - Parameters:
  ///   - attempt: The dial.
  ///   - loss: Why it ended.
  public func attemptFailed(_ attempt: AttemptID, _ loss: LinkLoss) { record(.attemptFailed(attempt, loss)) }

  /// Records it.
  ///
  /// - Parameter state: The state of the adapter.
  public func adapterChanged(_ state: AdapterState) { record(.adapterChanged(state)) }

  /// Records it.
  ///
  /// - Parameters:
  ///   - link: The link.
  ///   - request: The request.
  ///   - answer: The answer.
  public func link(_ link: LinkID, answered request: RequestID, with answer: Result<GATTAnswer, GATTFailure>)
  {
    record(.answered(link, request, answer))
  }

  /// Records it.
  ///
  /// - Parameters:
  ///   - link: The link.
  ///   - value: The value.
  ///   - characteristic: The characteristic.
  ///   - receivedAt: When it came, which is not kept.
  public func link(
    _ link: LinkID, value: [UInt8], of characteristic: Characteristic, receivedAt: Timestamp
  ) {
    record(.value(link, value, of: characteristic))
  }

  /// Records it.
  ///
  /// - Parameter link: The link.
  public func linkTableChanged(_ link: LinkID) { record(.tableChanged(link)) }

  /// Records it.
  ///
  /// - Parameter link: The link.
  public func linkWritable(_ link: LinkID) { record(.writable(link)) }

  /// Records it.
  ///
  /// - Parameters:
  ///   - link: The link.
  ///   - level: What it is to be raised to.
  public func link(_ link: LinkID, needs level: SecurityLevel) { record(.needs(link, level)) }

  /// Records it.
  ///
  /// - Parameters:
  ///   - link: The link.
  ///   - level: How far it is secured.
  public func link(_ link: LinkID, secured level: SecurityLevel) { record(.secured(link, level)) }

  /// Records it.
  ///
  /// - Parameters:
  ///   - link: The link.
  ///   - loss: Why it is not secured.
  public func link(_ link: LinkID, notSecured loss: LinkLoss) { record(.notSecured(link, loss)) }

  /// Records it, and keeps who takes the answer for ``answer(_:)``.
  ///
  /// - Parameters:
  ///   - link: The link.
  ///   - question: What is asked.
  ///   - responder: What takes the answer.
  public func link(_ link: LinkID, asks question: PairingQuestion, _ responder: PairingResponder) {
    record(.asks(link, question)) { $0.responders.append(responder) }
  }

  /// Records it.
  ///
  /// - Parameters:
  ///   - other: The other name.
  ///   - evidence: How it is known.
  public func deviceSeen(as other: DeviceID, _ evidence: [Evidence]) { record(.seen(as: other, evidence)) }

  /// Records it.
  ///
  /// - Parameters:
  ///   - link: The link.
  ///   - loss: Why it is gone.
  ///   - inDoubt: The requests in doubt.
  public func link(_ link: LinkID, closed loss: LinkLoss, inDoubt: [RequestID]) {
    record(.closed(link, loss, inDoubt: inDoubt)) { state in
      if state.link?.id == link { state.link = nil }
    }
  }
}
