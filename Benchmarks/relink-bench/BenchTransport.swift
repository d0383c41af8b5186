internal import CBenchmark
internal import Relink
internal import RelinkBlueZ

/// A transport whose every dial succeeds at once, with a channel that a closure makes.
final class BenchTransport: Transport {
  private struct State {
    var handlers: [DeviceID: Weak] = [:]
    var tables: [DeviceID: AttributeTableMemory] = [:]
    var lastLink: UInt64 = 0
  }

  private struct Weak {
    weak var handler: (any LinkHandler)?
  }

  let loop: RadioLoop
  let capabilities = TransportCapabilities(endsLinks: true)
  private let makeChannel: @Sendable (DeviceID) -> any PDUChannel
  private let state = Locked(State())

  init(on loop: RadioLoop, makeChannel: @escaping @Sendable (DeviceID) -> any PDUChannel) {
    self.loop = loop
    self.makeChannel = makeChannel
  }

  /// A transport whose links are pairs of sockets, with a peer in C at the far end, pinned to the first processor.
  static func overSockets(on loop: RadioLoop) -> BenchTransport {
    BenchTransport(on: loop) { _ in
      var near: Int32 = 0
      var far: Int32 = 0
      // A pair that cannot be made is a descriptor that cannot be read: the channel reports it as its end.
      if bench_socket_pair(&near, &far) == 0 { _ = bench_start_peer(far, 0) }
      return SeqPacketChannel(adopting: OwnedDescriptor(adopting: near), on: loop)
    }
  }

  var executor: any SessionExecutor { loop }

  func adapterState(for device: DeviceID) -> AdapterState { .on }

  func existingLinks() -> [DeviceID] { [] }

  func register(_ handler: any LinkHandler, for device: DeviceID) throws(RelinkError) {
    state.withLock { $0.handlers[device] = Weak(handler: handler) }
  }

  func unregister(_ device: DeviceID) {
    state.withLock { $0.handlers[device] = nil }
  }

  func dial(_ device: DeviceID, attempt: AttemptID, options: DialOptions) -> any Attempt {
    loop.post { self.answer(device, attempt) }
    return BenchAttempt()
  }

  private func answer(_ device: DeviceID, _ attempt: AttemptID) {
    let (handler, tables, id) = state.withLock { state in
      state.lastLink += 1
      let tables = state.tables[device] ?? AttributeTableMemory()
      state.tables[device] = tables
      return (state.handlers[device]?.handler, tables, LinkID(rawValue: state.lastLink))
    }
    guard let handler else { return }
    let link = ATTLink(id: id, over: makeChannel(device), on: loop, for: handler, tables: tables)
    link.start()
    handler.linkUp(link, attempt: attempt)
  }
}

private final class BenchAttempt: Attempt {
  func cancel() {}
}

/// A channel whose far end answers inside `send`; the answer is posted.
///
/// It costs nothing but the posting.
final class ZeroCostChannel: PDUChannel {
  private struct State {
    weak var handler: (any PDUChannelHandler)?
    var isMute = false
  }

  let maximumPDULength = 247
  private let loop: RadioLoop
  private let state = Locked(State())

  init(on loop: RadioLoop) {
    self.loop = loop
  }

  func open(_ handler: any PDUChannelHandler) {
    state.withLock { $0.handler = handler }
  }

  func send(_ pdu: [UInt8]) -> PDUSendResult {
    let (handler, isMute) = state.withLock { ($0.handler, $0.isMute) }
    guard let handler, !isMute else { return .sent }
    let reply = [UInt8](unsafeUninitializedCapacity: 64) { buffer, count in
      count = bench_answer(pdu, pdu.count, buffer.baseAddress)
    }
    if !reply.isEmpty { loop.post { handler.channelReceived(reply.span.bytes) } }
    return .sent
  }

  func close() {
    lose(.requested)
  }

  /// From now on nothing is answered.
  func mute() {
    state.withLock { $0.isMute = true }
  }

  /// Ends the channel as a lost link does.
  func lose(_ reason: DisconnectReason) {
    guard let handler = state.withLock({ $0.handler }) else { return }
    state.withLock { $0.handler = nil }
    loop.post { handler.channelClosed(LinkLoss(reason)) }
  }
}
