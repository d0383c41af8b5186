/// Numbers of the Attribute Protocol, and how much fits into a PDU (Core Specification Vol 3 Part F 3.2 and 3.4).
///
/// The functions take the MTU of the bearer in octets and answer in octets or items. They answer 0 where nothing
/// fits.
public enum ATTLimits {
  /// The MTU of an LE bearer before an exchange, in octets (Vol 3 Part G 5.2.1).
  public static let defaultMTU = 23
  /// The largest MTU that an Exchange MTU PDU can say.
  public static let maximumMTU = 65535
  /// The longest value of an attribute, in octets (Vol 3 Part F 3.2.9).
  public static let maximumAttributeLength = 512
  /// How long a client waits for a response, and a server for a confirmation, in seconds (Vol 3 Part F 3.3.3).
  ///
  /// After it no further request or indication may be sent on that bearer.
  public static let transactionTimeout = 30
  /// The length of the signature of a Signed Write Command, in octets.
  public static let signatureLength = 12

  /// The longest value in a Read, Read Blob or Read Multiple Response.
  ///
  /// - Parameter mtu: The MTU of the bearer in octets.
  /// - Returns: Octets.
  @inlinable
  public static func maximumReadLength(mtu: Int) -> Int { max(0, mtu - 1) }

  /// The longest value in a Write Request, Write Command, notification or indication.
  ///
  /// - Parameter mtu: The MTU of the bearer in octets.
  /// - Returns: Octets.
  @inlinable
  public static func maximumWriteLength(mtu: Int) -> Int { max(0, mtu - 3) }

  /// The longest value in a Signed Write Command.
  ///
  /// - Parameter mtu: The MTU of the bearer in octets.
  /// - Returns: Octets.
  @inlinable
  public static func maximumSignedWriteLength(mtu: Int) -> Int { max(0, mtu - 15) }

  /// The longest part of a value in a Prepare Write Request or Response.
  ///
  /// - Parameter mtu: The MTU of the bearer in octets.
  /// - Returns: Octets.
  @inlinable
  public static func maximumPrepareLength(mtu: Int) -> Int { max(0, mtu - 5) }

  /// The longest value in an item of a Read By Type Response; a longer value is cut by the server.
  ///
  /// - Parameter mtu: The MTU of the bearer in octets.
  /// - Returns: Octets, at most 253 because the length of an item is one octet.
  @inlinable
  public static func maximumReadByTypeValueLength(mtu: Int) -> Int { max(0, min(mtu - 4, 253)) }

  /// The longest value in an item of a Read By Group Type Response; a longer value is cut by the server.
  ///
  /// - Parameter mtu: The MTU of the bearer in octets.
  /// - Returns: Octets, at most 251 because the length of an item is one octet.
  @inlinable
  public static func maximumReadByGroupTypeValueLength(mtu: Int) -> Int { max(0, min(mtu - 6, 251)) }

  /// The longest value in a Find By Type Value Request.
  ///
  /// - Parameter mtu: The MTU of the bearer in octets.
  /// - Returns: Octets.
  @inlinable
  public static func maximumFindByTypeValueLength(mtu: Int) -> Int { max(0, mtu - 7) }

  /// How many items a Find Information Response holds.
  ///
  /// - Parameters:
  ///   - mtu: The MTU of the bearer in octets.
  ///   - uuidLength: 2 or 16, the same for all items of one response.
  /// - Returns: Items.
  @inlinable
  public static func maximumFindInformationItems(mtu: Int, uuidLength: Int) -> Int {
    max(0, mtu - 2) / (2 + uuidLength)
  }

  /// How many items a Find By Type Value Response holds.
  ///
  /// - Parameter mtu: The MTU of the bearer in octets.
  /// - Returns: Items.
  @inlinable
  public static func maximumFindByTypeValueItems(mtu: Int) -> Int { max(0, mtu - 1) / 4 }

  /// How many items a Read By Type Response holds.
  ///
  /// - Parameters:
  ///   - mtu: The MTU of the bearer in octets.
  ///   - valueLength: The length of the value, the same for all items of one response.
  /// - Returns: Items.
  @inlinable
  public static func maximumReadByTypeItems(mtu: Int, valueLength: Int) -> Int {
    max(0, mtu - 2) / (2 + valueLength)
  }

  /// How many items a Read By Group Type Response holds.
  ///
  /// - Parameters:
  ///   - mtu: The MTU of the bearer in octets.
  ///   - valueLength: The length of the value, the same for all items of one response.
  /// - Returns: Items.
  @inlinable
  public static func maximumReadByGroupTypeItems(mtu: Int, valueLength: Int) -> Int {
    max(0, mtu - 2) / (4 + valueLength)
  }

  /// How many handles a Read Multiple or Read Multiple Variable Request holds.
  ///
  /// - Parameter mtu: The MTU of the bearer in octets.
  /// - Returns: Handles.
  @inlinable
  public static func maximumReadMultipleHandles(mtu: Int) -> Int { max(0, mtu - 1) / 2 }
}
