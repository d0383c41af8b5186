internal import BluetoothWire
public import Relink

/// A virtual peripheral as the contract suites use it, behind whichever transport.
public struct VirtualContractPeer: ContractPeer, SecurityContractPeer {
  /// What the suite tells a transport's world to do.
  public struct World: Sendable {
    var setPresent: @Sendable (Bool) -> Void
    var setAdapter: @Sendable (Bool) -> Void
    var setBond: @Sendable (_ atDevice: Bool, _ here: Bool) -> Bool = { _, _ in false }
    var setPairing: @Sendable (Bool) -> Bool = { _ in false }

    /// Describes what can be done.
    ///
    /// - Parameters:
    ///   - setPresent: Lets dials find the device, or not; runs on the executor.
    ///   - setAdapter: Switches the adapter; runs on the executor.
    public init(
      setPresent: @escaping @Sendable (Bool) -> Void, setAdapter: @escaping @Sendable (Bool) -> Void
    ) {
      self.setPresent = setPresent
      self.setAdapter = setAdapter
    }
  }

  /// The characteristic that the suites use.
  public var characteristic: Characteristic { .contractValue }
  /// The one beside it.
  public var secondCharacteristic: Characteristic? { .contractSecondValue }
  /// How late a late answer is.
  public let slowAnswer: Duration
  /// The peripheral.
  public let peripheral: VirtualPeripheral
  private let driver: any ContractDriver
  private let world: World?

  /// Makes a peer.
  ///
  /// - Parameters:
  ///   - driver: Lets calls happen on the executor.
  ///   - slowAnswer: How late a late answer is.
  ///   - world: What can be done to the world around; nil for nothing, so that some rules are skipped.
  public init(driver: any ContractDriver, slowAnswer: Duration = .seconds(1), world: World? = nil) {
    peripheral = VirtualPeripheral(
      services: [
        VirtualService(
          .contractService,
          characteristics: [
            VirtualCharacteristic(
              BluetoothUUID.contractValue, [.read, .write, .writeWithoutResponse, .notify]),
            VirtualCharacteristic(BluetoothUUID.contractSecondValue, [.read, .write]),
            VirtualCharacteristic(
              BluetoothUUID.contractProtectedValue, [.read, .write], security: .encrypted),
          ])
      ])
    self.driver = driver
    self.slowAnswer = slowAnswer
    self.world = world
  }

  /// The same peer in a world.
  ///
  /// - Parameter world: What can be done to it.
  /// - Returns: A peer with the same peripheral.
  public func inside(_ world: World) -> VirtualContractPeer {
    VirtualContractPeer(self, world)
  }

  private init(_ other: VirtualContractPeer, _ world: World) {
    (peripheral, driver, slowAnswer) = (other.peripheral, other.driver, other.slowAnswer)
    self.world = world
  }

  private func act(_ body: @escaping @Sendable (VirtualPeripheral) -> Void) async {
    await driver.perform { [peripheral] in body(peripheral) }
  }

  /// Sets the value.
  ///
  /// - Parameter value: The value.
  public func setValue(_ value: [UInt8]) async { await act { $0.setValue(value, of: .contractValue) } }

  /// Notifies a value.
  ///
  /// - Parameter value: The value.
  public func notify(_ value: [UInt8]) async { await act { $0.update(value, of: .contractValue) } }

  /// Ends the link with reason 0x13.
  public func endLink() async { await act { $0.terminate() } }

  /// Swallows the next read or write.
  public func swallowNextRequest() async {
    await act {
      guard let handle = $0.valueHandle(of: .contractValue) else { return }
      $0.react(to: .handle(handle), with: .swallow, times: 1)
    }
  }

  /// Answers the next read late.
  public func answerNextReadLate() async {
    await act { [slowAnswer] in $0.react(to: .read(.contractValue), with: .answerLate(slowAnswer), times: 1) }
  }

  /// Swallows the next execution of a long write.
  public func swallowNextExecution() async {
    await act { $0.react(to: .opcode(.executeWriteRequest), with: .swallow, times: 1) }
  }

  /// Answers the next read or write two times.
  public func answerNextRequestTwice() async {
    await act {
      guard let handle = $0.valueHandle(of: .contractValue) else { return }
      $0.react(to: .handle(handle), with: .answerTwice, times: 1)
    }
  }

  /// Forgets what it was told to do wrong.
  public func behave() async { await act { $0.reactProperly() } }

  /// The values that were written.
  ///
  /// - Returns: The values, in order.
  public func writes() async -> [[UInt8]] { peripheral.counters.applied.map(\.value) }

  /// How many links there were.
  ///
  /// - Returns: The number.
  public func linkCount() async -> Int { peripheral.counters.links }

  /// Lets dials find the device, or not.
  ///
  /// - Parameter isPresent: Whether they find it.
  /// - Returns: Whether there is a world to do it in.
  public func setPresent(_ isPresent: Bool) async -> Bool {
    guard let world else { return false }
    await driver.perform { world.setPresent(isPresent) }
    return true
  }

  /// The one that needs an encrypted link.
  public var protectedCharacteristic: Characteristic { .contractProtectedValue }

  /// Gives the peripheral and the host a bond, or takes it from either.
  ///
  /// - Parameters:
  ///   - atDevice: Whether the peripheral has its half.
  ///   - here: Whether the host has its half.
  /// - Returns: Whether there is a world to do it in.
  public func setBond(atDevice: Bool, here: Bool) async -> Bool {
    guard let world else { return false }
    return await driver.perform { world.setBond(atDevice, here) }
  }

  /// Lets the peripheral agree to be paired with, or refuse.
  ///
  /// - Parameter agrees: Whether it agrees.
  /// - Returns: Whether there is a world to do it in.
  public func setPairing(_ agrees: Bool) async -> Bool {
    guard let world else { return false }
    return await driver.perform { world.setPairing(agrees) }
  }

  /// How often the peripheral was asked to pair.
  ///
  /// - Returns: The number.
  public func pairingRequests() async -> Int? { peripheral.counters.pairingRequests }

  /// What was written to the protected value.
  ///
  /// - Returns: The values, in order.
  public func protectedWrites() async -> [[UInt8]] {
    peripheral.counters.applied.filter { $0.characteristic.uuid == .contractProtectedValue }.map(\.value)
  }

  /// Switches the adapter.
  ///
  /// - Parameter isOn: Whether it is to be on.
  /// - Returns: Whether there is a world to do it in.
  public func setAdapter(_ isOn: Bool) async -> Bool {
    guard let world else { return false }
    await driver.perform { world.setAdapter(isOn) }
    return true
  }
}

/// An environment for the contract suites that is put together from its parts.
public struct VirtualContractEnvironment: SecurityContractEnvironment {
  /// Lets the suite wait.
  public var driver: any ContractDriver
  /// The implementation.
  public var transport: any Transport
  /// The device that can be dialled.
  public var device: DeviceID
  /// The device that is never there.
  public var absentDevice: DeviceID?
  /// What answers for the device.
  public var peer: any ContractPeer
  /// Whether a dial waits until a link that was closed here is gone.
  public var waitsForOldLinks: Bool
  /// What can be done to keys; nothing, where ``peer`` is no virtual one.
  public var keys: any SecurityContractPeer { (peer as? any SecurityContractPeer) ?? NoKeys() }

  /// Puts an environment together.
  ///
  /// - Parameters:
  ///   - driver: Lets the suite wait.
  ///   - transport: The implementation.
  ///   - device: The device that can be dialled.
  ///   - absentDevice: The device that is never there.
  ///   - peer: What answers for the device.
  ///   - waitsForOldLinks: Whether a dial waits until a link that was closed here is gone.
  public init(
    driver: any ContractDriver, transport: any Transport, device: DeviceID, absentDevice: DeviceID?,
    peer: any ContractPeer, waitsForOldLinks: Bool
  ) {
    self.driver = driver
    self.transport = transport
    self.device = device
    self.absentDevice = absentDevice
    self.peer = peer
    self.waitsForOldLinks = waitsForOldLinks
  }

  /// A virtual radio on a manual executor.
  ///
  /// - Parameters:
  ///   - executor: The executor.
  ///   - configuration: What the radio is like. One whose links linger hands a lingering link to the next dial, as a
  ///     Linux host does, and leaves it to the session to wait.
  /// - Returns: The environment.
  public static func virtualRadio(
    on executor: ManualExecutor, configuration: VirtualRadio.Configuration = VirtualRadio.Configuration()
  ) -> VirtualContractEnvironment {
    let driver = ManualContractDriver(executor)
    let radio = VirtualRadio(on: executor, configuration: configuration)
    let device = DeviceID(contractName: "device")
    var world = VirtualContractPeer.World(
      setPresent: { radio.setAdvertising($0, of: device) }, setAdapter: { radio.setAdapter($0 ? .on : .off) })
    world.setBond = { atDevice, here in
      radio.bond(device)
      if !here { radio.forgetBond(atHost: device) }
      if !atDevice { radio.forgetBond(atPeripheral: device) }
      return true
    }
    world.setPairing = {
      radio.setPairing($0 ? .justWorks : .refuses, of: device)
      return true
    }
    let peer = VirtualContractPeer(driver: driver).inside(world)
    radio.add(peer.peripheral, as: device)
    return VirtualContractEnvironment(
      driver: driver, transport: radio, device: device, absentDevice: DeviceID(contractName: "nobody"),
      peer: peer,
      waitsForOldLinks: configuration.endsLinks || configuration.waitsForOldLinks)
  }

  /// A managed radio on a manual executor.
  ///
  /// - Parameters:
  ///   - executor: The executor.
  ///   - configuration: How the platform behaves.
  /// - Returns: The environment.
  public static func managedRadio(
    on executor: ManualExecutor, configuration: ManagedConfiguration = ManagedConfiguration()
  ) -> VirtualContractEnvironment {
    let driver = ManualContractDriver(executor)
    let radio = ManagedRadio(on: executor, configuration: configuration)
    let device = DeviceID(contractName: "device")
    let peer = VirtualContractPeer(driver: driver).inside(
      VirtualContractPeer.World(
        setPresent: { radio.setReachable($0, device) }, setAdapter: { radio.setAdapter($0 ? .on : .off) }))
    radio.add(peer.peripheral, as: device)
    return VirtualContractEnvironment(
      driver: driver, transport: radio, device: device, absentDevice: DeviceID(contractName: "nobody"),
      peer: peer,
      waitsForOldLinks: true)
  }
}

/// A device of whose keys nothing is known.
private struct NoKeys: SecurityContractPeer {
  let protectedCharacteristic = Characteristic.contractProtectedValue
  func setBond(atDevice: Bool, here: Bool) async -> Bool { false }
  func setPairing(_ agrees: Bool) async -> Bool { false }
  func pairingRequests() async -> Int? { nil }
  func protectedWrites() async -> [[UInt8]] { [] }
}

extension DeviceID {
  /// A name that is no address.
  fileprivate init(contractName: String) {
    guard let device = DeviceID("contract-" + contractName) else {
      preconditionFailure("a name is never empty")
    }
    self = device
  }
}

extension Characteristic {
  /// The characteristic that the contract suites use.
  public static let contractValue = Characteristic(.contractValue, in: .contractService)
  /// The one that needs an encrypted link.
  public static let contractProtectedValue = Characteristic(.contractProtectedValue, in: .contractService)
  /// The one that they write together with it.
  public static let contractSecondValue = Characteristic(.contractSecondValue, in: .contractService)
}

extension BluetoothUUID {
  /// The service of the device that the contract suites use.
  public static let contractService = BluetoothUUID(0x434F_4E54_0001_4000, 0x8000_5245_4C49_4E4B)
  /// The characteristic of the device that the contract suites use.
  public static let contractValue = BluetoothUUID(0x434F_4E54_0002_4000, 0x8000_5245_4C49_4E4B)
  /// The other characteristic of the device that the contract suites use.
  public static let contractSecondValue = BluetoothUUID(0x434F_4E54_0003_4000, 0x8000_5245_4C49_4E4B)
  /// The protected characteristic of the device that the contract suites use.
  public static let contractProtectedValue = BluetoothUUID(0x434F_4E54_0004_4000, 0x8000_5245_4C49_4E4B)
}
