internal import BluetoothWire

// Characteristics that the Bluetooth SIG has assigned and that many devices have (Assigned Numbers 3.8).
extension Characteristic {
  /// Battery Level (0x2A19) of the Battery Service: percent, one byte.
  public static let batteryLevel = Characteristic(.batteryLevel, in: .battery)

  /// Heart Rate Measurement (0x2A37) of the Heart Rate Service; notified.
  public static let heartRateMeasurement = Characteristic(.heartRateMeasurement, in: .heartRate)

  /// Device Name (0x2A00) of the Generic Access Service: UTF-8.
  public static let deviceName = Characteristic(.deviceName, in: .genericAccess)
}
