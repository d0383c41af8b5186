public import Relink

/// What ``PDUChannelContract`` needs to try a channel.
public protocol ChannelContractEnvironment: Sendable {
  /// Lets the suite wait.
  var driver: any ContractDriver { get }

  /// Connects a channel that nobody has opened yet.
  ///
  /// - Returns: The channel and its far end.
  /// - Throws: Anything, where it cannot be connected; the check fails with it.
  func connect() async throws -> (channel: any PDUChannel, far: any ChannelFarEnd)
}

/// The far end of a channel.
public protocol ChannelFarEnd: Sendable {
  /// Sends a PDU towards the channel; nothing happens where the link is gone.
  ///
  /// - Parameter pdu: Its octets.
  func send(_ pdu: [UInt8]) async
  /// What has arrived so far.
  ///
  /// - Returns: The PDUs, in order.
  func received() async -> [[UInt8]]
  /// Ends the link; nothing happens where it is gone.
  func end() async
  /// Stops, or goes on, to take what is sent, so that the channel gets full.
  ///
  /// - Parameter isStalled: Whether it stops.
  /// - Returns: Whether that could be done.
  func setStalled(_ isStalled: Bool) async -> Bool
}

/// Collects what a channel delivers.
final class ChannelRecorder: PDUChannelHandler {
  private struct State {
    var received: [[UInt8]] = []
    var writables = 0
    var closings: [LinkLoss] = []
    var isSilentBehindClosed = true
    var calls = 0
    var deliveriesInsideCalls = 0
  }

  private let state = Locked(State())

  var received: [[UInt8]] { state.withLock { $0.received } }
  var writables: Int { state.withLock { $0.writables } }
  var closings: [LinkLoss] { state.withLock { $0.closings } }
  var isSilentBehindClosed: Bool { state.withLock { $0.isSilentBehindClosed } }
  var deliveriesInsideCalls: Int { state.withLock { $0.deliveriesInsideCalls } }

  func calling<Value>(_ call: () -> Value) -> Value {
    state.withLock { $0.calls += 1 }
    defer { state.withLock { $0.calls -= 1 } }
    return call()
  }

  private func record(_ change: (inout State) -> Void) {
    state.withLock { state in
      if state.calls > 0 { state.deliveriesInsideCalls += 1 }
      if !state.closings.isEmpty { state.isSilentBehindClosed = false }
      change(&state)
    }
  }

  func channelReceived(_ pdu: borrowing RawSpan) {
    let octets = (0..<pdu.byteCount).map { pdu.unsafeLoad(fromByteOffset: $0, as: UInt8.self) }
    record { $0.received.append(octets) }
  }

  func channelWritable() { record { $0.writables += 1 } }

  func channelClosed(_ loss: LinkLoss) { record { $0.closings.append(loss) } }
}

/// A channel under test with its recorder.
final class ChannelBench: Sendable {
  let environment: any ChannelContractEnvironment
  let channel: any PDUChannel
  let far: any ChannelFarEnd
  let recorder = ChannelRecorder()

  init(
    _ environment: any ChannelContractEnvironment,
    _ connected: (channel: any PDUChannel, far: any ChannelFarEnd)
  ) {
    self.environment = environment
    channel = connected.channel
    far = connected.far
  }

  var driver: any ContractDriver { environment.driver }

  func open() async {
    await driver.perform { [channel, recorder] in recorder.calling { channel.open(recorder) } }
  }

  func send(_ pdu: [UInt8]) async -> PDUSendResult {
    await driver.perform { [channel, recorder] in recorder.calling { channel.send(pdu) } }
  }

  func close() async {
    await driver.perform { [channel, recorder] in recorder.calling { channel.close() } }
  }

  func closed() async throws {
    let came = await driver.wait { [recorder] in !recorder.closings.isEmpty }
    try require(came, "the end of the channel was not delivered")
  }

  /// Waits until so many PDUs have come, and then for whatever else comes.
  func settle(untilReceived count: Int) async {
    _ = await driver.wait { [recorder] in recorder.received.count >= count }
    await driver.settle()
  }

  /// Waits until so many PDUs have arrived at the far end, and then for whatever else arrives.
  func arrived(_ count: Int) async -> [[UInt8]] {
    for _ in 0..<50 {
      if await far.received().count >= count { break }
      await driver.settle()
    }
    await driver.settle()
    return await far.received()
  }

  func finish() async {
    await close()
    await far.end()
    await driver.settle()
  }
}
