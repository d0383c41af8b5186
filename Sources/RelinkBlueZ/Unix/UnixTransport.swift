public import Relink

/// A transport over Unix sockets: a device is a path, `unix:/run/lock.sock`, where a peripheral listens.
///
/// The socket is of type SEQPACKET, and each datagram is one ATT PDU. A connect is a link that comes up; end of file is
/// its loss. So a peripheral can be written in any language and run beside, without a radio.
public final class UnixTransport: Transport {
  /// What the text of a device begins with.
  public static let prefix = "unix:"

  private let loop: RadioLoop
  private let registry = DeviceRegistry()

  /// Makes a transport on the loop of this process.
  ///
  /// - Throws: `system` when the loop could not be made.
  public convenience init() throws(RelinkError) {
    self.init(on: try RadioLoop.shared())
  }

  /// Makes a transport on a loop.
  ///
  /// - Parameter loop: Where the transport and each session over it run.
  public init(on loop: RadioLoop) {
    self.loop = loop
  }

  /// The device behind a path.
  ///
  /// - Parameter path: The path of a socket, at most 107 bytes.
  /// - Returns: Its device.
  public static func device(at path: String) -> DeviceID? {
    path.isEmpty ? nil : DeviceID(prefix + path)
  }

  /// The path of a device; nil where its text has another form.
  static func path(of device: DeviceID) -> String? {
    let text = device.description
    guard device.address == nil, text.hasPrefix(prefix), text.count > prefix.count else { return nil }
    return String(text.dropFirst(prefix.count))
  }

  // MARK: Transport

  /// The loop.
  public var executor: any SessionExecutor { loop }

  /// A closed socket is a link that is gone; why it was lost is not known exactly.
  public var capabilities: TransportCapabilities {
    TransportCapabilities(knowsExactReason: false, endsLinks: true)
  }

  /// Always on: there is no adapter.
  public func adapterState(for device: DeviceID) -> AdapterState { .on }

  /// The devices with a link of this transport; nobody else brings links up.
  ///
  /// - Returns: The devices, in no order.
  public func existingLinks() -> [DeviceID] { registry.linked }

  /// Makes `handler` the receiver of everything about `device`; held weakly.
  ///
  /// - Parameters:
  ///   - handler: The receiver.
  ///   - device: The device.
  /// - Throws: `sessionExists` while another handler is registered for the device; `invalidArgument` for a device that
  ///   is no path.
  public func register(_ handler: any LinkHandler, for device: DeviceID) throws(RelinkError) {
    guard UnixTransport.path(of: device) != nil else {
      throw RelinkError(.invalidArgument, "\(device) is no path; write unix:/path/of/socket.")
    }
    try registry.register(handler, for: device)
  }

  /// Takes the registration back.
  ///
  /// - Parameter device: The device.
  public func unregister(_ device: DeviceID) {
    registry.unregister(device)
  }

  /// Connects, and tries again after 100 ms, later each second, while nobody listens there.
  ///
  /// Without a limit it tries until it is cancelled. Access denied, and a path that can be no socket, end the attempt.
  ///
  /// - Parameters:
  ///   - device: The device.
  ///   - attempt: The name of the attempt.
  ///   - options: The limit of the attempt.
  /// - Returns: The attempt, which can be cancelled.
  public func dial(_ device: DeviceID, attempt: AttemptID, options: DialOptions) -> any Attempt {
    let dial = UnixDial(device, attempt, options, loop: loop, registry: registry)
    loop.post { dial.tryOnce() }
    return dial
  }
}
