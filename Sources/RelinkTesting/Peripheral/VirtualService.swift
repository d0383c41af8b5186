public import BluetoothWire
public import Relink

/// A service of a virtual peripheral, as it is declared.
public struct VirtualService: Hashable, Sendable {
  /// The UUID of the service.
  public var uuid: BluetoothUUID
  /// Whether it is a primary service (Core Specification Vol 3 Part G 3.1); otherwise it is a secondary one.
  public var isPrimary: Bool
  /// The handle of its declaration; nil places it behind what stands before it.
  public var handle: UInt16?
  /// Its characteristics in the order of their handles.
  public var characteristics: [VirtualCharacteristic]

  /// Declares a service.
  public init(
    _ uuid: BluetoothUUID, isPrimary: Bool = true, handle: UInt16? = nil,
    characteristics: [VirtualCharacteristic]
  ) {
    self.uuid = uuid
    self.isPrimary = isPrimary
    self.handle = handle
    self.characteristics = characteristics
  }

  /// How many attributes the service has.
  public var attributeCount: Int {
    characteristics.reduce(1) { $0 + 2 + ($1.hasConfiguration ? 1 : 0) + $1.descriptors.count }
  }

  /// The same service with every handle that it fixes moved up.
  func shifted(by distance: UInt16) -> VirtualService {
    var service = self
    service.handle = handle.map { $0 + distance }
    for index in service.characteristics.indices {
      service.characteristics[index].valueHandle = service.characteristics[index].valueHandle.map {
        $0 + distance
      }
    }
    return service
  }
}

/// A characteristic of a virtual peripheral, as it is declared.
public struct VirtualCharacteristic: Hashable, Sendable {
  /// The UUID of the characteristic.
  public var uuid: BluetoothUUID
  /// What it allows; a request that it does not allow is answered with the error of the specification.
  public var properties: CharacteristicProperties
  /// The value at first.
  public var value: [UInt8]
  /// The handle of the value, so that scripts may say 0x0010.
  ///
  /// The declaration stands one before, the Client
  /// Characteristic Configuration descriptor one behind. Nil places it behind what stands before it.
  public var valueHandle: UInt16?
  /// The lengths of value that it takes, in bytes; a write of another length is answered with 0x0D.
  public var lengths: ClosedRange<Int>
  /// What the link needs before the value may be read or written.
  public var security: VirtualSecurity
  /// Whether there is no Client Characteristic Configuration descriptor although the properties ask for one, as on
  /// some devices that break the rules.
  public var omitsConfiguration: Bool
  /// The other descriptors, behind the Client Characteristic Configuration.
  public var descriptors: [VirtualDescriptor]

  /// Declares a characteristic.
  public init(
    _ uuid: BluetoothUUID, _ properties: CharacteristicProperties, value: [UInt8] = [],
    valueHandle: UInt16? = nil, lengths: ClosedRange<Int> = 0...ATTLimits.maximumAttributeLength,
    security: VirtualSecurity = .none, omitsConfiguration: Bool = false,
    descriptors: [VirtualDescriptor] = []
  ) {
    self.uuid = uuid
    self.properties = properties
    self.value = value
    self.valueHandle = valueHandle
    self.lengths = lengths
    self.security = security
    self.omitsConfiguration = omitsConfiguration
    self.descriptors = descriptors
  }

  /// Whether there is a Client Characteristic Configuration descriptor.
  var hasConfiguration: Bool {
    !omitsConfiguration && !properties.isDisjoint(with: [.notify, .indicate])
  }
}

/// A descriptor of a virtual peripheral, as it is declared; not the Client Characteristic Configuration.
public struct VirtualDescriptor: Hashable, Sendable {
  /// The type of the descriptor.
  public var uuid: BluetoothUUID
  /// The value at first.
  public var value: [UInt8]
  /// Whether a client may write it.
  public var isWritable: Bool

  /// Declares a descriptor.
  public init(_ uuid: BluetoothUUID, value: [UInt8] = [], isWritable: Bool = false) {
    self.uuid = uuid
    self.value = value
    self.isWritable = isWritable
  }
}

/// How far a link is secured, or has to be, in the eyes of a virtual peripheral.
public enum VirtualSecurity: Int, Hashable, Sendable, Comparable {
  /// Nothing is asked.
  case none
  /// The link has to be encrypted; otherwise the answer is 0x0F, insufficient encryption, where there is a bond that
  /// could encrypt it, and 0x05, insufficient authentication, where there is none.
  case encrypted
  /// The keys have to be authenticated as well; otherwise the answer is 0x05.
  case authenticated
  /// The user of the device has to agree as well; otherwise the answer is 0x08, insufficient authorization.
  case authorized

  /// Orders by how much is asked.
  ///
  /// - Parameters:
  ///   - left: A level.
  ///   - right: A level.
  /// - Returns: Whether the left one asks for less.
  public static func < (left: VirtualSecurity, right: VirtualSecurity) -> Bool {
    left.rawValue < right.rawValue
  }

  /// What a link of this level is to a device.
  init(_ level: SecurityLevel) {
    switch level {
    case .none: self = .none
    case .encrypted: self = .encrypted
    case .authenticated, .secureConnections: self = .authenticated
    }
  }
}
