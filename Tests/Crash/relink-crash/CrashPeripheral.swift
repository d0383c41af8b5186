internal import BluetoothWire
internal import Glibc
internal import Relink
internal import RelinkBlueZ
internal import RelinkCrash
internal import RelinkTesting

extension Characteristic {
  /// A characteristic of the peripheral of crash runs.
  private static func crash(_ number: UInt64) -> Characteristic {
    let uuid = { (number: UInt64) in BluetoothUUID(number << 32 | 0x4352_4153, 0x8000_5245_4C49_4E4B) }
    return Characteristic(uuid(number), in: uuid(1))
  }

  static let dispense = crash(2)
  static let setting = crash(3)
  static let valve = crash(4)
  static let door = crash(5)
  static let recipe = crash(6)
  static let beep = crash(7)
  static let status = crash(8)
}

extension CrashDevice {
  static let unix = CrashDevice(
    nonIdempotent: .dispense, idempotent: .setting, verified: .valve, named: .door, long: .recipe,
    unanswered: .beep, status: .status)
}

/// What befalls a write that arrives, drawn by chance.
struct WriteFates: Sendable {
  private var random: SeededGenerator

  init(seed: UInt64) { random = SeededGenerator(seed: seed) }

  /// - Parameter isPunctual: Whether a write is carried out at once or never: what a probe relies on.
  mutating func next(isPunctual: Bool) -> ServerReaction {
    var reaction = ServerReaction(answerDelay: random.next(in: .zero ... .milliseconds(2)))
    if !isPunctual, random.next(below: 2) == 0 {
      reaction.applicationDelay = random.next(in: .zero ... .milliseconds(2))
    }
    switch random.next(below: 100) {
    case 0..<3: return .drop()
    case 3..<6: return .applyAndDrop()
    case 6: return .answerAndDrop()
    case 7: return .applyAndFail(.unlikelyError)
    case 8: return .refuse(.writeNotPermitted)
    default: return reaction
    }
  }
}

/// A peripheral behind a path that counts what it carries out, over the deaths of its clients.
///
/// It has one link at a time: the next one is taken when everything that came on the last one has been looked at and its
/// end was seen, as on the air.
final class CrashPeripheral: VirtualPeer {
  private struct State {
    var fates: WriteFates?
    var link: SeqPacketChannel?
    var links = 0
    var arrivals = 0
    var whenArrived: (@Sendable (_ arrivals: Int) -> Void)?
  }

  let loop: RadioLoop
  let path: String
  private let server: VirtualPeripheral
  private let state = Locked(State())

  init(at path: String) throws {
    self.path = path
    loop = try RadioLoop()
    let members: [VirtualCharacteristic] = [
      VirtualCharacteristic(Characteristic.dispense.uuid, [.read, .write]),
      VirtualCharacteristic(Characteristic.setting.uuid, [.read, .write]),
      VirtualCharacteristic(Characteristic.valve.uuid, [.read, .write]),
      VirtualCharacteristic(Characteristic.door.uuid, [.read, .write]),
      VirtualCharacteristic(Characteristic.recipe.uuid, [.read, .write]),
      VirtualCharacteristic(Characteristic.beep.uuid, [.writeWithoutResponse]),
      VirtualCharacteristic(Characteristic.status.uuid, .read, value: [1]),
    ]
    guard let service = Characteristic.dispense.service else { throw CrashFailure("no service") }
    server = VirtualPeripheral(
      services: [VirtualService(service, characteristics: members)], mtuLimit: 64)
    unlink(path)
  }

  /// How often each number was carried out.
  var counts: [Int: Int] {
    server.counters.appliedByTag.reduce(into: [:]) { $0[Int(truncatingIfNeeded: $1.key)] = $1.value }
  }

  /// How many links have come up.
  var links: Int { state.withLock { $0.links } }

  /// From now on writes meet these fates; nil carries all of them out at once.
  func meet(_ fates: WriteFates?) { state.withLock { $0.fates = fates } }

  /// Calls `body` on the loop with how many writes have arrived since, before anything is done about the latest.
  func whenArrived(_ body: (@Sendable (Int) -> Void)?) {
    state.withLock { state in
      state.arrivals = 0
      state.whenArrived = body
    }
  }

  // MARK: Links

  /// Listens from now on, on a thread of its own.
  func listen() throws {
    let listener = socket(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    guard path.utf8.count < MemoryLayout.size(ofValue: address.sun_path) else {
      throw CrashFailure("\(path) is too long for a socket")
    }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let bound = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    guard listener >= 0, bound == 0, Glibc.listen(listener, 8) == 0 else {
      throw CrashFailure("nothing can listen at \(path): error \(errno)")
    }
    let acceptor = try RadioLoop()
    acceptor.post { self.accept(on: listener, acceptor) }
  }

  private func accept(on listener: Int32, _ acceptor: RadioLoop) {
    let accepted = Glibc.accept(listener, nil, nil)
    guard accepted >= 0 else { return }
    _ = fcntl(accepted, F_SETFD, FD_CLOEXEC)
    loop.post {
      self.take(OwnedDescriptor(adopting: accepted)) { acceptor.post { self.accept(on: listener, acceptor) } }
    }
  }

  private func take(_ descriptor: consuming OwnedDescriptor, _ ended: @escaping @Sendable () -> Void) {
    let channel = SeqPacketChannel(adopting: descriptor, on: loop)
    let number = state.withLock { state in
      state.links += 1
      state.link = channel
      return state.links
    }
    let link = PeerLink(
      number: number, on: loop, send: { [weak channel] in _ = channel?.send($0) },
      terminate: { [weak channel] _ in channel?.close() })
    let served = PeripheralEnd(link, of: self, ended)
    served.keep()
    channel.open(served)
    linkOpened(link)
  }

  // MARK: VirtualPeer

  func linkOpened(_ link: PeerLink) { server.linkOpened(link) }

  func linkClosed(_ link: PeerLink, reason: HCIErrorCode) {
    server.linkClosed(link, reason: reason)
    state.withLock { $0.link = nil }
  }

  func received(_ pdu: [UInt8], on link: PeerLink) {
    if let opcode = pdu.first, CrashPeripheral.writes.contains(opcode) { arrived(pdu) }
    server.received(pdu, on: link)
  }

  /// Write Request, Write Command, Execute Write Request (Core Specification Vol 3 Part F 3.4.8).
  private static let writes: Set<UInt8> = [0x12, 0x52, 0x18]

  private func arrived(_ pdu: [UInt8]) {
    let handle = pdu.count >= 3 ? UInt16(pdu[1]) | UInt16(pdu[2]) << 8 : 0
    let isProbed =
      handle == server.valueHandle(of: .valve) || handle == server.valueHandle(of: .door)
      || handle == server.valueHandle(of: .setting)
    let (reaction, told, count) = state.withLock { state in
      state.arrivals += 1
      return (state.fates?.next(isPunctual: isProbed), state.whenArrived, state.arrivals)
    }
    told?(count)
    server.reactProperly()
    if let reaction, pdu.first != 0x52 { server.react(to: .anything, with: reaction, times: 1) }
  }
}

/// One link of the peripheral.
private final class PeripheralEnd: PDUChannelHandler {
  private let link: PeerLink
  private let peer: any VirtualPeer
  private let ended: @Sendable () -> Void
  /// The channel holds its handler weakly.
  private let own = Locked<PeripheralEnd?>(nil)

  init(_ link: PeerLink, of peer: any VirtualPeer, _ ended: @escaping @Sendable () -> Void) {
    self.link = link
    self.peer = peer
    self.ended = ended
  }

  func keep() { own.withLock { $0 = self } }

  func channelReceived(_ pdu: borrowing RawSpan) {
    peer.received(pdu.withUnsafeBytes { Array($0) }, on: link)
  }

  func channelWritable() {}

  func channelClosed(_ loss: LinkLoss) {
    peer.linkClosed(link, reason: .remoteUserTerminatedConnection)
    own.withLock { $0 = nil }
    ended()
  }
}
