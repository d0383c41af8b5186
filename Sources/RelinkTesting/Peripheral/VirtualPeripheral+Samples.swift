public import BluetoothWire
internal import Relink

// Peripherals that are ready to use, for demonstrations and tests.
extension VirtualPeripheral {
  /// A battery that can be read and notifies (Battery Service 1.0).
  ///
  /// - Parameter level: The level at first, 0 to 100 percent.
  /// - Returns: The peripheral.
  public static func battery(level: UInt8 = 90) -> VirtualPeripheral {
    VirtualPeripheral(name: "Battery", services: [.battery(level: level)])
  }

  /// A heart rate belt: notifies measurements, reads the location of the sensor, takes a reset of the energy counter
  /// (Heart Rate Service 1.0), and has a battery.
  public static func heartRateBelt() -> VirtualPeripheral {
    VirtualPeripheral(
      name: "Heart rate belt",
      services: [
        VirtualService(
          .heartRate,
          characteristics: [
            VirtualCharacteristic(.heartRateMeasurement, .notify),
            VirtualCharacteristic(.bodySensorLocation, .read, value: [1]),
            VirtualCharacteristic(.heartRateControlPoint, .write, lengths: 1...1),
          ]),
        .battery(level: 80),
      ])
  }

  /// A thermometer that indicates its measurements (Health Thermometer Service 1.0).
  public static func thermometer() -> VirtualPeripheral {
    VirtualPeripheral(
      name: "Thermometer",
      services: [
        VirtualService(
          .healthThermometer, characteristics: [VirtualCharacteristic(.temperatureMeasurement, .indicate)])
      ])
  }

  /// A lock that counts: each command that it carries out moves the bolt once more, and it says how often it moved.
  ///
  /// The command is written to ``BluetoothWire/BluetoothUUID/lockCommand``, with or without response: any value, of
  /// which eight bytes at the start serve as a number that ``PeripheralCounters/applied(tag:)`` finds again. The
  /// number of movements, four bytes with the least significant first, is read from
  /// ``BluetoothWire/BluetoothUUID/lockMovements`` and notified after each of them.
  public static func lock() -> VirtualPeripheral {
    let peripheral = VirtualPeripheral(
      name: "Lock",
      services: [
        VirtualService(
          .lock,
          characteristics: [
            VirtualCharacteristic(
              .lockCommand, [.write, .writeWithoutResponse], valueHandle: 0x0010, lengths: 1...512),
            VirtualCharacteristic(
              .lockMovements, [.read, .notify], value: [0, 0, 0, 0], valueHandle: 0x0020),
          ]),
        .battery(level: 100),
      ])
    peripheral.whenApplied(Characteristic(.lockCommand)) { peripheral, _ in
      let movements = Characteristic(.lockMovements)
      let count =
        (peripheral.value(of: movements) ?? []).reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) } &+ 1
      peripheral.update((0..<4).map { UInt8(truncatingIfNeeded: count >> ($0 * 8)) }, of: movements)
    }
    return peripheral
  }

  /// Notifies one measurement of a heart rate belt.
  ///
  /// - Parameter beatsPerMinute: The heart rate.
  /// - Returns: How many clients were told.
  @discardableResult
  public func beat(_ beatsPerMinute: UInt8) -> Int {
    update([0, beatsPerMinute], of: Characteristic(.heartRateMeasurement))
  }

  /// Indicates one measurement of a thermometer.
  ///
  /// - Parameter millidegrees: The temperature in thousandths of a degree Celsius; coded with an exponent of -3 in 24
  ///   bits (IEEE 11073-20601), so that 8,388 degrees either way can be said.
  /// - Returns: How many clients were told.
  @discardableResult
  public func measure(millidegrees: Int32) -> Int {
    let mantissa = (0..<3).map { UInt8(truncatingIfNeeded: millidegrees >> ($0 * 8)) }
    return update([0] + mantissa + [UInt8(bitPattern: -3)], of: Characteristic(.temperatureMeasurement))
  }
}

extension VirtualService {
  /// A Battery Service whose level can be read and is notified.
  ///
  /// - Parameter level: The level at first, 0 to 100 percent.
  /// - Returns: The service.
  public static func battery(level: UInt8) -> VirtualService {
    VirtualService(
      .battery, characteristics: [VirtualCharacteristic(.batteryLevel, [.read, .notify], value: [level])])
  }
}

extension BluetoothUUID {
  /// The service of the lock that ``VirtualPeripheral/lock()`` makes.
  public static let lock = BluetoothUUID(0x4C4F_434B_0001_4000, 0x8000_5245_4C49_4E4B)
  /// The characteristic that takes the commands of a virtual lock.
  public static let lockCommand = BluetoothUUID(0x4C4F_434B_0002_4000, 0x8000_5245_4C49_4E4B)
  /// The characteristic that says how often the bolt of a virtual lock moved.
  public static let lockMovements = BluetoothUUID(0x4C4F_434B_0003_4000, 0x8000_5245_4C49_4E4B)
}
