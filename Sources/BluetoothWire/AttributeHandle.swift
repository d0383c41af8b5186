/// The handle of an attribute on a server: 1 to 65535 (Core Specification Vol 3 Part F 3.2.2).
///
/// Zero is reserved and names no attribute; a peer may still send it, so ``ATTPDU`` carries plain integers.
public struct AttributeHandle: RawRepresentable, Hashable, Comparable, Sendable {
  /// The number of the handle.
  public let rawValue: UInt16

  /// The handle with this number.
  ///
  /// - Parameter rawValue: The number; zero is accepted and names no attribute.
  @inlinable
  public init(rawValue: UInt16) { self.rawValue = rawValue }

  /// The handle with this number.
  ///
  /// - Parameter value: The number; zero is accepted and names no attribute.
  @inlinable
  public init(_ value: UInt16) { self.rawValue = value }

  /// The first handle that an attribute can have, 1.
  public static let min = AttributeHandle(0x0001)
  /// The last handle that an attribute can have, 65535.
  public static let max = AttributeHandle(0xFFFF)

  /// True unless the number is the reserved zero.
  @inlinable
  public var isValid: Bool { rawValue != 0 }

  /// The handle after this one, nil after the last.
  @inlinable
  public var next: AttributeHandle? { rawValue == 0xFFFF ? nil : AttributeHandle(rawValue + 1) }

  /// Orders by number.
  ///
  /// - Parameters:
  ///   - left: A handle.
  ///   - right: A handle.
  /// - Returns: True if the number of `left` is the smaller one.
  @inlinable
  public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

extension AttributeHandle: CustomStringConvertible {
  /// The number in hexadecimal, such as `0x002A`.
  public var description: String { "0x" + hexadecimal(rawValue, digits: 4) }
}
