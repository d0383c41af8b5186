public import BluetoothWire

/// The name of a device for a transport: its Bluetooth device address and the type of that address.
///
/// Written `C0:DE:00:00:00:01/random` or `…/public`. A text without a Bluetooth address (a socket path, an identifier
/// that another platform gives out) is kept as it is and means something only to the transport that reads it.
public struct DeviceID: Hashable, Sendable, Codable, CustomStringConvertible {
  /// The type of a Bluetooth device address (Core Specification Vol 6 Part B 1.3).
  @nonexhaustive
  public enum AddressType: String, Sendable, Codable {
    /// An IEEE address, given by the manufacturer.
    case `public`
    /// A random address: static, resolvable or not.
    case random
  }

  private enum Form: Hashable, Codable {
    case address(BluetoothAddress, AddressType)
    case other(String)
  }

  private var form: Form

  /// Reads `AA:BB:CC:DD:EE:FF/random`, `AA:BB:CC:DD:EE:FF/public` or any other non-empty text.
  ///
  /// An address without its type is refused: dialling the wrong type finds nothing for 40 s and says nothing.
  public init?(_ text: String) {
    let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    if let first = parts.first, let address = BluetoothAddress(String(first)) {
      guard parts.count == 2, let type = AddressType(rawValue: parts[1].lowercased()) else { return nil }
      form = .address(address, type)
    } else {
      guard !text.isEmpty else { return nil }
      form = .other(text)
    }
  }

  /// Names a device by its address and the type of that address.
  public init(address: BluetoothAddress, type: AddressType) {
    form = .address(address, type)
  }

  /// The Bluetooth device address, or nil where the device is named in another way.
  public var address: BluetoothAddress? {
    if case .address(let address, _) = form { address } else { nil }
  }

  /// The type of the address, or nil where the device is named in another way.
  public var addressType: AddressType? {
    if case .address(_, let type) = form { type } else { nil }
  }

  /// The text that ``init(_:)`` reads.
  public var description: String {
    switch form {
    case .address(let address, let type): "\(address)/\(type.rawValue)"
    case .other(let text): text
    }
  }
}

/// The number of a link within its session: 1 for the first, one more for each later one.
///
/// A generation is one ACL link, from up to gone; it is not a socket.
public struct Generation: RawRepresentable, Hashable, Comparable, Sendable, CustomStringConvertible {
  /// The number.
  public var rawValue: UInt64

  /// Makes a generation from its number.
  public init(rawValue: UInt64) { self.rawValue = rawValue }

  /// Whether the left link is the older one.
  public static func < (left: Generation, right: Generation) -> Bool { left.rawValue < right.rawValue }

  /// The number as text.
  public var description: String { String(rawValue) }
}

/// The name of a link in its transport, never used twice while the process lives.
public struct LinkID: RawRepresentable, Hashable, Sendable {
  /// The number.
  public var rawValue: UInt64

  /// Makes a link ID from its number.
  @inlinable
  public init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// The name of one dial, chosen by the session that asks for it.
public struct AttemptID: RawRepresentable, Hashable, Sendable {
  /// The number.
  public var rawValue: UInt64

  /// Makes an attempt ID from its number.
  @inlinable
  public init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// The name of a request on a link, chosen by the session; it is not used twice on one link.
public struct RequestID: RawRepresentable, Hashable, Comparable, Sendable {
  /// The number.
  public var rawValue: UInt64

  /// Makes a request ID from its number.
  @inlinable
  public init(rawValue: UInt64) { self.rawValue = rawValue }

  /// Whether the left request was made earlier.
  @inlinable
  public static func < (left: RequestID, right: RequestID) -> Bool { left.rawValue < right.rawValue }
}
