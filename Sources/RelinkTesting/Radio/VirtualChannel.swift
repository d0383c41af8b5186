public import Relink

/// The central's ATT channel of one virtual link.
///
/// Closing it leaves the ACL link alive for a while, as Linux does; `channelClosed` comes when that is gone.
public final class VirtualChannel: SecurableChannel {
  enum Event: Sendable {
    case received([UInt8])
    case writable
    case secured(SecurityLevel)
    case notSecured(LinkLoss)
    case asks(PairingQuestion, PairingResponder)
    case closed(LinkLoss)
  }

  private enum Phase {
    /// Nobody receives yet.
    case unopened
    /// A receiver is named; what came before is on its way.
    case opening
    case open
  }

  private struct State {
    weak var radio: VirtualRadio?
    weak var handler: (any PDUChannelHandler)?
    var phase = Phase.unopened
    var backlog: [Event] = []
    /// Closed from here, or the last word was said.
    var isClosed = false
    var saidLastWord = false
  }

  /// The longest PDU that the channel carries, in bytes.
  public let maximumPDULength: Int

  /// The number of the ACL link that carries it.
  public let linkNumber: Int

  /// The number of the channel among those of its radio.
  let number: Int

  private let executor: any SessionExecutor
  private let state: Locked<State>

  init(number: Int, linkNumber: Int, maximumPDULength: Int, radio: VirtualRadio) {
    self.number = number
    self.linkNumber = linkNumber
    self.maximumPDULength = maximumPDULength
    executor = radio.executor
    state = Locked(State(radio: radio))
  }

  /// How far the link is encrypted, or what the radio was told of the device; none once the channel is closed, or its
  /// link gone.
  public var security: SecurityLevel {
    let radio = state.withLock { $0.isClosed ? nil : $0.radio }
    return radio?.security(of: self) ?? .none
  }

  /// Encrypts the link with the bond that there is, or pairs for it.
  ///
  /// - Parameters:
  ///   - level: What the link is to offer at least.
  ///   - keys: Where the keys may come from.
  public func secure(to level: SecurityLevel, keys: SecurityPolicy.KeySource) {
    let radio = state.withLock { $0.isClosed ? nil : $0.radio }
    radio?.secure(self, to: level, keys)
  }

  /// Names the receiver, once; what has come before is delivered to it, in jobs of its own.
  ///
  /// - Parameter handler: The receiver; held weakly.
  public func open(_ handler: any PDUChannelHandler) {
    let hasBacklog = state.withLock {
      precondition($0.phase == .unopened, "A channel is opened once")
      $0.handler = handler
      $0.phase = $0.backlog.isEmpty ? .open : .opening
      return !$0.backlog.isEmpty
    }
    guard hasBacklog else { return }
    executor.post { [self] in
      let backlog = state.withLock { state in
        state.phase = .open
        defer { state.backlog = [] }
        return state.backlog
      }
      for event in backlog { deliver(event) }
    }
  }

  /// Hands a PDU over.
  ///
  /// - Parameter pdu: The bytes.
  /// - Returns: What became of it. On a link that is gone without anybody here knowing, it is sent, and vanishes.
  public func send(_ pdu: [UInt8]) -> PDUSendResult {
    let radio = state.withLock { $0.isClosed ? nil : $0.radio }
    return radio?.send(pdu, on: self) ?? .failed(ErrorNumber.notConnected)
  }

  /// Ends the channel, and its link after a while.
  public func close() {
    let radio = state.withLock { state -> VirtualRadio? in
      guard !state.isClosed else { return nil }
      state.isClosed = true
      return state.radio
    }
    radio?.close(self)
  }

  /// Whether the channel was closed from here or has said its last word.
  var isClosed: Bool { state.withLock { $0.isClosed } }

  /// To be called in a job of the executor.
  func deliver(_ event: Event) {
    let handler = state.withLock { state -> (any PDUChannelHandler)? in
      guard state.phase == .open else {
        state.backlog.append(event)
        return nil
      }
      if state.saidLastWord { return nil }
      switch event {
      case .received, .writable, .secured, .notSecured, .asks:
        // After a local close only the last word follows.
        if state.isClosed { return nil }
      case .closed:
        state.isClosed = true
        state.saidLastWord = true
      }
      return state.handler
    }
    guard let handler else { return }
    switch event {
    case .received(let pdu): handler.channelReceived(pdu.span.bytes)
    case .writable: handler.channelWritable()
    case .secured(let level): handler.channelSecured(level)
    case .notSecured(let loss): handler.channelNotSecured(loss)
    case .asks(let question, let responder): handler.channelAsks(question, responder)
    case .closed(let loss): handler.channelClosed(loss)
    }
  }
}
