public struct BluetoothUUID: Hashable, Sendable, Codable, CustomStringConvertible {
  public var a: UInt64, b: UInt64; public init(_ s: UInt16) { a = UInt64(s); b = 0 };
  public var description: String { "" }
}
public struct BluetoothAddress: Hashable, Sendable, Codable, CustomStringConvertible {
  var v: UInt64; public init?(_ t: String) { return nil }; public var description: String { "" }
}
public struct ATTErrorCode: RawRepresentable, Hashable, Sendable {
  public var rawValue: UInt8; public init(rawValue: UInt8) { self.rawValue = rawValue }
}
public struct HCIErrorCode: RawRepresentable, Hashable, Sendable {
  public var rawValue: UInt8; public init(rawValue: UInt8) { self.rawValue = rawValue }
}
