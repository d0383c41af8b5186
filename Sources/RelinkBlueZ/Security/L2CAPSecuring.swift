internal import BluetoothWire
internal import Relink

/// Secures the link beneath one ATT socket; used on the loop.
final class L2CAPSecuring: LinkSecuring {
  /// The device, as the session names it.
  let device: DeviceAddress
  private let security: HostSecurity
  private var machine: SecuringStateMachine
  private weak var socket: (any SecurableSocket)?
  /// The adapter that has the link; nil until security is first of interest.
  private(set) var adapter: AdapterRecord?
  private var isClosed = false
  private var latestLoss = LinkLoss(.unknown)

  init(_ device: DeviceAddress, _ security: HostSecurity) {
    self.device = device
    self.security = security
    machine = SecuringStateMachine(
      ManagementAddress(device.address, device.managementType), name: device.device.description)
    security.add(self)
  }

  /// What the device turned out to be called.
  var identity: ManagementAddress? { machine.identity }

  // MARK: LinkSecuring

  func secure(_ socket: any SecurableSocket, to level: SecurityLevel, keys: SecurityPolicy.KeySource) {
    self.socket = socket
    if adapter == nil { adapter = security.adapter(ofLinkTo: device) }
    security.learn(of: device.device, adapter: adapter) { [weak self] facts in
      guard let self, !isClosed, let socket = self.socket else { return }
      var facts = facts
      facts.level = socket.security
      perform(machine.asked(for: level, keys: keys, facts))
    }
  }

  func socketBecameWritable() {
    guard let socket else { return }
    perform(machine.becameWritable(level: socket.security))
  }

  func socketClosed() {
    isClosed = true
    machine.linkClosed()
    security.remove(self)
  }

  // MARK: What the kernel says

  func managementClosed() { perform(machine.managementClosed()) }

  /// One event or answer of the adapter that has the link.
  func received(_ event: ManagementEvent, isDaemonRunning: Bool) {
    switch event {
    case .commandComplete(.loadLongTermKeys, let status, _), .commandStatus(.loadLongTermKeys, let status):
      perform(machine.keysLoaded(status))
    case .commandComplete(.readControllerInformation, .success, .controllerInformation(let information)):
      perform(machine.controllerRead(information.supportedSettings, information.currentSettings))
    case .commandComplete(.readControllerInformation, _, _), .commandStatus(.readControllerInformation, _):
      perform(machine.controllerRead([], [.bondable]))
    case .commandComplete(.setBondable, _, _), .commandStatus(.setBondable, _):
      perform(machine.settingMade(.bondable))
    case .commandComplete(.setSecureConnections, _, _), .commandStatus(.setSecureConnections, _):
      perform(machine.settingMade(.secureConnections))
    case .commandComplete(.pairDevice, let status, .device(let other)) where isOurs(other):
      pairingEnded(status)
    case .commandStatus(.pairDevice, let status):
      // It does not say for which device, so with two pairings at once the wrong one may be told.
      pairingEnded(status)
    case .authenticationFailed(let other, let status):
      perform(machine.authenticationFailed(other, status))
    case .newLongTermKey(let shouldStore, let key):
      perform(machine.keyMade(key, shouldStore: shouldStore))
    case .newIdentityResolvingKey(let shouldStore, let address, let key):
      perform(machine.identityMade(key, from: address, shouldStore: shouldStore))
    default:
      if !isDaemonRunning { asked(event) }
    }
  }

  /// The questions of a pairing, which bluetoothd answers where it runs.
  private func asked(_ event: ManagementEvent) {
    switch event {
    case .userConfirmationRequest(let other, let isYesNoOnly, let value):
      perform(machine.confirmationRequested(other, isYesNoOnly: isYesNoOnly, value: value))
    case .userPasskeyRequest(let other):
      perform(machine.passkeyRequested(other))
    case .passkeyNotify(let other, let passkey, _):
      perform(machine.passkeyNotified(other, passkey))
    default: break
    }
  }

  private func pairingEnded(_ status: ManagementStatus) {
    perform(machine.pairingEnded(status, level: socket?.security ?? .none))
  }

  private func isOurs(_ other: ManagementAddress) -> Bool {
    other == ManagementAddress(device.address, device.managementType) || other == machine.identity
  }

  // MARK: Shell

  private func perform(_ actions: [SecuringStateMachine.Action]) {
    for action in actions {
      switch action {
      case .loadKeys(let includesDevice):
        security.loadKeys(adapter, without: includesDevice ? nil : device.device)
      case .readController: send(.readControllerInformation)
      case .setBondable: send(.setBondable(true))
      case .setSecureConnections: send(.setSecureConnections(true))
      case .raise(let level): raise(to: level)
      case .pair(let abilities):
        let type = device.managementType
        send(.pairDevice(address: device.address, type: type, ioCapability: abilities.rawValue))
      case .cancelPairing:
        send(.cancelPairDevice(address: device.address, type: device.managementType))
      case .ask(let question, let number): ask(question, number)
      case .confirm(let isAccepted):
        let name = currentName
        send(
          isAccepted
            ? .userConfirmationReply(address: name.address, type: name.type)
            : .userConfirmationNegativeReply(address: name.address, type: name.type))
      case .enter(let digits):
        let name = currentName
        send(
          digits.map { .userPasskeyReply(address: name.address, type: name.type, passkey: $0) }
            ?? .userPasskeyNegativeReply(address: name.address, type: name.type))
      case .keep(let keys, let identity): security.made(keys, identity, adapter)
      case .seen(let identity): security.seen(device, as: identity)
      case .secured(let level): socket?.secured(level)
      case .notSecured(let loss):
        latestLoss = loss
        socket?.notSecured(loss)
      case .endLink: socket?.end(latestLoss)
      }
    }
  }

  /// As the kernel names the device at the moment.
  private var currentName: ManagementAddress {
    machine.identity ?? ManagementAddress(device.address, device.managementType)
  }

  private func send(_ command: ManagementCommand) {
    guard let adapter else { return }
    security.send(command, to: adapter.index)
  }

  private func raise(to level: SecurityLevel) {
    guard let socket else { return }
    let error = socket.raise(to: level)
    if error != 0 { perform(machine.raiseFailed(error, level: socket.security)) }
  }

  private func ask(_ question: PairingQuestion, _ number: Int) {
    let loop = security.loop
    let responder = PairingResponder { [weak self] answer in
      loop.post { [weak self] in
        guard let self else { return }
        perform(machine.answered(number, answer))
      }
    }
    socket?.asks(question, responder)
  }
}

// Everything that is not `let` is touched on the loop alone.
extension L2CAPSecuring: @unchecked Sendable {}
