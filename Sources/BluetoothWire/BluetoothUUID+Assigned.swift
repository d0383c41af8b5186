// Assigned numbers (Bluetooth SIG, Assigned Numbers 3.4 to 3.8) that a GATT client or its first programs need.

// Services.
extension BluetoothUUID {
  /// The Generic Access service.
  public static let genericAccess = BluetoothUUID(0x1800 as UInt16)
  /// The Generic Attribute service.
  public static let genericAttribute = BluetoothUUID(0x1801 as UInt16)
  /// The Device Information service.
  public static let deviceInformation = BluetoothUUID(0x180A as UInt16)
  /// The Heart Rate service.
  public static let heartRate = BluetoothUUID(0x180D as UInt16)
  /// The Battery service.
  public static let battery = BluetoothUUID(0x180F as UInt16)
  /// The Health Thermometer service.
  public static let healthThermometer = BluetoothUUID(0x1809 as UInt16)
  /// The Cycling Power service.
  public static let cyclingPower = BluetoothUUID(0x1818 as UInt16)
  /// The Environmental Sensing service.
  public static let environmentalSensing = BluetoothUUID(0x181A as UInt16)
  /// The Weight Scale service.
  public static let weightScale = BluetoothUUID(0x181D as UInt16)
}

// Declarations.
extension BluetoothUUID {
  /// The Primary Service declaration.
  public static let primaryService = BluetoothUUID(0x2800 as UInt16)
  /// The Secondary Service declaration.
  public static let secondaryService = BluetoothUUID(0x2801 as UInt16)
  /// The Include declaration.
  public static let include = BluetoothUUID(0x2802 as UInt16)
  /// The Characteristic declaration.
  public static let characteristic = BluetoothUUID(0x2803 as UInt16)
}

// Descriptors.
extension BluetoothUUID {
  /// The Characteristic Extended Properties descriptor.
  public static let characteristicExtendedProperties = BluetoothUUID(0x2900 as UInt16)
  /// The Characteristic User Description descriptor.
  public static let characteristicUserDescription = BluetoothUUID(0x2901 as UInt16)
  /// The Client Characteristic Configuration descriptor.
  public static let clientCharacteristicConfiguration = BluetoothUUID(0x2902 as UInt16)
  /// The Server Characteristic Configuration descriptor.
  public static let serverCharacteristicConfiguration = BluetoothUUID(0x2903 as UInt16)
  /// The Characteristic Presentation Format descriptor.
  public static let characteristicPresentationFormat = BluetoothUUID(0x2904 as UInt16)
  /// The Characteristic Aggregate Format descriptor.
  public static let characteristicAggregateFormat = BluetoothUUID(0x2905 as UInt16)
}

// Characteristics.
extension BluetoothUUID {
  /// The Device Name characteristic.
  public static let deviceName = BluetoothUUID(0x2A00 as UInt16)
  /// The Appearance characteristic.
  public static let appearance = BluetoothUUID(0x2A01 as UInt16)
  /// The Peripheral Preferred Connection Parameters characteristic.
  public static let peripheralPreferredConnectionParameters = BluetoothUUID(0x2A04 as UInt16)
  /// The Service Changed characteristic.
  public static let serviceChanged = BluetoothUUID(0x2A05 as UInt16)
  /// The Battery Level characteristic.
  public static let batteryLevel = BluetoothUUID(0x2A19 as UInt16)
  /// The Temperature Measurement characteristic.
  public static let temperatureMeasurement = BluetoothUUID(0x2A1C as UInt16)
  /// The System ID characteristic.
  public static let systemID = BluetoothUUID(0x2A23 as UInt16)
  /// The Model Number String characteristic.
  public static let modelNumber = BluetoothUUID(0x2A24 as UInt16)
  /// The Serial Number String characteristic.
  public static let serialNumber = BluetoothUUID(0x2A25 as UInt16)
  /// The Firmware Revision String characteristic.
  public static let firmwareRevision = BluetoothUUID(0x2A26 as UInt16)
  /// The Hardware Revision String characteristic.
  public static let hardwareRevision = BluetoothUUID(0x2A27 as UInt16)
  /// The Software Revision String characteristic.
  public static let softwareRevision = BluetoothUUID(0x2A28 as UInt16)
  /// The Manufacturer Name String characteristic.
  public static let manufacturerName = BluetoothUUID(0x2A29 as UInt16)
  /// The Heart Rate Measurement characteristic.
  public static let heartRateMeasurement = BluetoothUUID(0x2A37 as UInt16)
  /// The Body Sensor Location characteristic.
  public static let bodySensorLocation = BluetoothUUID(0x2A38 as UInt16)
  /// The Heart Rate Control Point characteristic.
  public static let heartRateControlPoint = BluetoothUUID(0x2A39 as UInt16)
  /// The Central Address Resolution characteristic.
  public static let centralAddressResolution = BluetoothUUID(0x2AA6 as UInt16)
  /// The Client Supported Features characteristic.
  public static let clientSupportedFeatures = BluetoothUUID(0x2B29 as UInt16)
  /// The Database Hash characteristic.
  public static let databaseHash = BluetoothUUID(0x2B2A as UInt16)
  /// The Server Supported Features characteristic.
  public static let serverSupportedFeatures = BluetoothUUID(0x2B3A as UInt16)
}
