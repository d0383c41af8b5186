public import BluetoothWire

/// The name of a characteristic: its UUID, and where that is not enough, its service and which of several it is.
///
/// A name survives reconnections and changes of the attribute table; handles are looked up on each link.
public struct Characteristic: Hashable, Sendable, CustomStringConvertible {
  /// The UUID of the characteristic.
  public var uuid: BluetoothUUID

  /// The UUID of the service that holds it; nil matches any service.
  public var service: BluetoothUUID?

  /// Which one of those that match, counted from 0 in the order of their handles.
  public var occurrence: Int

  /// Names a characteristic.
  public init(_ uuid: BluetoothUUID, in service: BluetoothUUID? = nil, occurrence: Int = 0) {
    self.uuid = uuid
    self.service = service
    self.occurrence = occurrence
  }

  /// The name as text: `180F/2A19`, with `[n]` for a later occurrence.
  public var description: String {
    let prefix = service.map { "\($0)/" } ?? ""
    return prefix + uuid.description + (occurrence == 0 ? "" : "[\(occurrence)]")
  }
}

/// What a characteristic allows (Core Specification Vol 3 Part G 3.3.1.1).
public struct CharacteristicProperties: OptionSet, Hashable, Sendable {
  /// The bits of the Characteristic Properties field.
  public var rawValue: UInt8

  /// Makes properties from the bits of the field.
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// The value may be broadcast.
  public static let broadcast = CharacteristicProperties(rawValue: 0x01)
  /// The value may be read.
  public static let read = CharacteristicProperties(rawValue: 0x02)
  /// The value may be written without response.
  public static let writeWithoutResponse = CharacteristicProperties(rawValue: 0x04)
  /// The value may be written with response.
  public static let write = CharacteristicProperties(rawValue: 0x08)
  /// The value may be notified.
  public static let notify = CharacteristicProperties(rawValue: 0x10)
  /// The value may be indicated.
  public static let indicate = CharacteristicProperties(rawValue: 0x20)
  /// The value may be written with a signature.
  public static let authenticatedSignedWrites = CharacteristicProperties(rawValue: 0x40)
  /// Further properties are in the Characteristic Extended Properties descriptor.
  public static let extendedProperties = CharacteristicProperties(rawValue: 0x80)
}

/// A service as a link shows it, without handles.
public struct DiscoveredService: Hashable, Sendable {
  /// The UUID of the service.
  public var uuid: BluetoothUUID

  /// Its characteristics in the order of their handles.
  public var characteristics: [DiscoveredCharacteristic]

  /// Describes a service.
  public init(uuid: BluetoothUUID, characteristics: [DiscoveredCharacteristic]) {
    self.uuid = uuid
    self.characteristics = characteristics
  }
}

/// A characteristic as a link shows it, without handles.
public struct DiscoveredCharacteristic: Hashable, Sendable {
  /// The name by which a session addresses it; unambiguous within the table.
  public var name: Characteristic

  /// What it allows.
  public var properties: CharacteristicProperties

  /// The UUIDs of its descriptors in the order of their handles.
  public var descriptors: [BluetoothUUID]

  /// Describes a characteristic.
  public init(name: Characteristic, properties: CharacteristicProperties, descriptors: [BluetoothUUID]) {
    self.name = name
    self.properties = properties
    self.descriptors = descriptors
  }
}
