public import BluetoothWire
public import Relink

/// A peripheral with a real GATT server behind a virtual link, which counts what it does.
///
/// It answers every request of the Attribute Protocol as Core Specification Vol 3 Part F and G ask, from services that
/// are declared with ``VirtualService``; behind them stand the Generic Access and Generic Attribute services unless
/// they are declined. What is kept per client, per link and per bearer lives exactly as long as the specification
/// says: the Client Characteristic Configuration goes with the link unless the client is bonded, prepared writes and
/// the ATT_MTU go with the ACL link and not with the client's channel.
///
/// ``counters`` says what was really carried out, also when the client was told something else;
/// ``react(to:with:times:)`` makes the peripheral misbehave. All members may be called on any thread; what they send
/// must be called for on the executor of the link's radio.
public final class VirtualPeripheral: VirtualPeer {
  private struct State {
    var server: GATTServer
    var hooks: [(pattern: Characteristic?, body: @Sendable (VirtualPeripheral, AppliedWrite) -> Void)] = []
  }

  /// The name in the Generic Access service and in advertisements.
  public let name: String
  private let state: Locked<State>

  /// Makes a peripheral.
  ///
  /// - Parameters:
  ///   - name: The Device Name (Core Specification Vol 3 Part C 12.1).
  ///   - services: The services of the application, behind the two that every device has. Handles that they fix must
  ///     come in order and leave room for those: 1 to 5 for Generic Access, 6 to 11 for Generic Attribute.
  ///   - mtuLimit: The server's receive MTU in bytes, at least 23.
  ///   - prepareLimit: How many parts a prepare queue holds; the next one is answered with 0x09.
  ///   - hasGenericServices: Whether the Generic Access and Generic Attribute services stand in front.
  ///   - hasServiceChanged: Whether the Generic Attribute service has a Service Changed characteristic.
  ///   - hasDatabaseHash: Whether the Generic Attribute service has a Database Hash characteristic.
  public init(
    name: String = "Relink", services: [VirtualService], mtuLimit: Int = 517, prepareLimit: Int = 64,
    hasGenericServices: Bool = true, hasServiceChanged: Bool = true, hasDatabaseHash: Bool = true
  ) {
    self.name = name
    var all = services
    if hasGenericServices {
      all.insert(.genericAttribute(serviceChanged: hasServiceChanged, hash: hasDatabaseHash), at: 0)
      all.insert(.genericAccess(name: name), at: 0)
    }
    state = Locked(State(server: GATTServer(all, mtuLimit: mtuLimit, prepareLimit: prepareLimit)))
  }

  // MARK: - What a medium calls

  /// An ACL link is up.
  ///
  /// - Parameter link: The peripheral's end of it.
  public func linkOpened(_ link: PeerLink) { opened(link, mtu: ATTLimits.defaultMTU) }

  /// A PDU has arrived.
  ///
  /// - Parameters:
  ///   - pdu: Its octets.
  ///   - link: The link on which they came.
  public func received(_ pdu: [UInt8], on link: PeerLink) { received(pdu, on: link, bearer: 0) }

  /// An ACL link is gone, and with it its prepare queue and, unless the client is bonded, its subscriptions.
  ///
  /// - Parameters:
  ///   - link: The peripheral's end of it.
  ///   - reason: Why.
  public func linkClosed(_ link: PeerLink, reason: HCIErrorCode) { closed(link) }

  /// Counts it.
  ///
  /// - Parameter link: The peripheral's end of the link.
  public func pairingRequested(on link: PeerLink) { pairingRequested() }

  /// Serves what the level allows from now on, and gives the bonded client its subscriptions back.
  ///
  /// - Parameters:
  ///   - link: The peripheral's end of it.
  ///   - level: How far.
  public func linkEncrypted(_ link: PeerLink, to level: SecurityLevel) { encrypted(link, to: level) }

  /// Keeps what belongs to the client beyond its links; they show it once they are encrypted.
  ///
  /// - Parameter client: The name of the central.
  public func bondMade(with client: String) {
    state.withLock { $0.server.bondMade(with: client) }
  }

  /// Forgets what was kept of the client.
  ///
  /// - Parameter client: The name of the central.
  public func bondForgotten(with client: String) { eraseBond(with: client) }

  func pairingRequested() {
    state.withLock { $0.server.counters.pairingRequests += 1 }
  }

  func encrypted(_ link: any ServedLink, to level: SecurityLevel) {
    perform { $0.encrypted(link, to: VirtualSecurity(level)) }
  }

  func opened(_ link: any ServedLink, mtu: Int) {
    perform { $0.opened(link, mtu: mtu) }
  }

  func received(_ pdu: [UInt8], on link: any ServedLink, bearer: Int) {
    perform { $0.received(pdu, on: link, bearer: bearer) }
  }

  func closed(_ link: any ServedLink) {
    state.withLock { $0.server.closed(link) }
  }

  // MARK: - What it counted

  /// What was carried out so far, over all links.
  public var counters: PeripheralCounters { state.withLock { $0.server.counters } }

  /// The numbers of the links that are up, in order.
  public var openLinks: [Int] {
    state.withLock { $0.server.links.values.map(\.link.number).sorted() }
  }

  /// How many parts of long and reliable writes are prepared and not executed, over all links.
  public var preparedParts: Int {
    state.withLock { state in
      state.server.links.values.reduce(0) { sum, link in
        link.bearers.values.reduce(sum) { $0 + $1.prepared.count }
      }
    }
  }

  // MARK: - Names and values

  /// The handle that the value of a characteristic has now.
  ///
  /// - Parameter name: The characteristic.
  /// - Returns: The handle; nil if there is no characteristic of this name.
  public func valueHandle(of name: Characteristic) -> UInt16? {
    state.withLock { $0.server.entry(name)?.valueHandle }
  }

  /// The handle that the Client Characteristic Configuration of a characteristic has now.
  ///
  /// - Parameter name: The characteristic.
  /// - Returns: The handle; nil if it has none.
  public func configurationHandle(of name: Characteristic) -> UInt16? {
    state.withLock { $0.server.entry(name)?.configurationHandle }
  }

  /// The value of a characteristic.
  ///
  /// - Parameter name: The characteristic.
  /// - Returns: The value; nil if there is no characteristic of this name.
  public func value(of name: Characteristic) -> [UInt8]? {
    state.withLock { state in state.server.table.key(of: name).map { state.server.currentValue(of: $0) } }
  }

  /// Sets a value without a word to anybody.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - name: The characteristic.
  public func setValue(_ value: [UInt8], of name: Characteristic) {
    state.withLock { state in
      guard let key = state.server.table.key(of: name) else { return }
      state.server.values[key] = value
    }
  }

  /// Sets a value, and notifies or indicates it to the clients that asked for that, cut to what a PDU carries.
  ///
  /// An indication waits until those before it on the same link are confirmed.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - name: The characteristic.
  /// - Returns: How many clients there were.
  @discardableResult
  public func update(_ value: [UInt8], of name: Characteristic) -> Int {
    var count = 0
    perform { server in
      guard let key = server.table.key(of: name) else { return [] }
      server.values[key] = value
      let (effects, reached) = server.announce(value, of: key)
      count = reached
      return effects
    }
    return count
  }

  /// Notifies or indicates a value on every link, whether its client asked for it or not, and sets nothing.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - handle: The handle that is named, of a value or of nothing.
  ///   - isIndication: Whether a confirmation is asked for.
  public func push(_ value: [UInt8], handle: UInt16, isIndication: Bool = false) {
    perform { server in
      server.linksInOrder.flatMap { server.push(handle, value, on: $0, isIndication: isIndication) }
    }
  }

  /// Runs `body` after each write that was applied, behind its answer, on the executor of the link.
  ///
  /// - Parameters:
  ///   - name: The characteristic; nil for all of them.
  ///   - body: Gets the peripheral, which may notify, and the write.
  public func whenApplied(
    _ name: Characteristic? = nil, _ body: @escaping @Sendable (VirtualPeripheral, AppliedWrite) -> Void
  ) {
    state.withLock { $0.hooks.append((name, body)) }
  }

  // MARK: - The shell

  /// Decides under the lock, acts behind it.
  func perform(_ decide: (inout GATTServer) -> [GATTServer.Effect]) {
    let effects = state.withLock { state in Effects(list: decide(&state.server)) }
    for effect in effects.list { perform(effect) }
  }

  func read<Value: Sendable>(_ look: (GATTServer) -> Value) -> Value {
    state.withLock { look($0.server) }
  }

  /// Effects hold what is sendable only; an array of an enum with existentials has to be told so.
  private struct Effects: Sendable {
    var list: [GATTServer.Effect]
  }

  private func perform(_ effect: GATTServer.Effect) {
    switch effect {
    case .respond(let link, let bearer, let octets): link.respond(octets, bearer: bearer)
    case .push(let link, let octets): link.push(octets)
    case .terminate(let link, let reason): link.terminate(reason)
    case .later(let link, let delay, let deferred):
      link.later(delay) { [weak self] in self?.perform { $0.resumed(deferred, on: link) } }
    case .applied(let write):
      let hooks = state.withLock { state in
        state.hooks.filter { $0.pattern.map { $0.matches(write.characteristic) } ?? true }.map(\.body)
      }
      for hook in hooks { hook(self, write) }
    }
  }
}

extension Characteristic {
  /// Whether this name, which may leave the service open, means the characteristic of the other, full name.
  fileprivate func matches(_ full: Characteristic) -> Bool {
    uuid == full.uuid && (service == nil || service == full.service) && occurrence == full.occurrence
  }
}

extension PeerLink: ServedLink {
  package func respond(_ pdu: [UInt8], bearer: Int) { send(pdu) }
  package func push(_ pdu: [UInt8]) { send(pdu) }
}

extension VirtualService {
  fileprivate static func genericAccess(name: String) -> VirtualService {
    VirtualService(
      .genericAccess,
      characteristics: [
        VirtualCharacteristic(.deviceName, .read, value: Array(name.utf8)),
        VirtualCharacteristic(.appearance, .read, value: [0, 0]),
      ])
  }

  fileprivate static func genericAttribute(serviceChanged: Bool, hash: Bool) -> VirtualService {
    var members: [VirtualCharacteristic] = []
    if serviceChanged { members.append(VirtualCharacteristic(.serviceChanged, .indicate)) }
    if hash { members.append(VirtualCharacteristic(.databaseHash, .read)) }
    return VirtualService(.genericAttribute, characteristics: members)
  }
}
