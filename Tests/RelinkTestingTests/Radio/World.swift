import Relink

@testable import RelinkTesting

/// A link that notes what its channel says and speaks no protocol.
final class BareLink: Link, PDUChannelHandler {
  let id: LinkID
  let channel: VirtualChannel
  let journal: Journal

  init(id: LinkID, channel: VirtualChannel, journal: Journal) {
    self.id = id
    self.channel = channel
    self.journal = journal
  }

  var capabilities: LinkCapabilities { LinkCapabilities() }
  var roundTrips: Int { 0 }
  func perform(_ request: GATTRequest, id: RequestID) -> LinkAcceptance { .later }
  func abandon(_ id: RequestID) -> Bool { false }
  func close() { channel.close() }

  func send(_ pdu: PDUBytes) -> PDUSendResult { channel.send(pdu.bytes) }

  func channelReceived(_ pdu: borrowing RawSpan) {
    var bytes: [UInt8] = []
    for offset in 0..<pdu.byteCount { bytes.append(pdu.unsafeLoad(fromByteOffset: offset, as: UInt8.self)) }
    journal.note("\(id.rawValue) < \(hexadecimal(bytes))")
  }

  func channelWritable() { journal.note("\(id.rawValue) writable") }
  func channelClosed(_ loss: LinkLoss) { journal.note("\(id.rawValue) closed \(loss.meaning)") }
}

/// A handler that notes what it is told and keeps the links that came up.
final class NotingHandler: LinkHandler {
  let journal: Journal
  private let kept = Locked<[BareLink]>([])

  init(journal: Journal) { self.journal = journal }

  var links: [BareLink] { kept.withLock { $0 } }

  func linkUp(_ link: any Link, attempt: AttemptID?) {
    if let link = link as? BareLink { kept.withLock { $0.append(link) } }
    journal.note("\(link.id.rawValue) up by \(attempt.map { "\($0.rawValue)" } ?? "nobody")")
  }
  func attemptFailed(_ attempt: AttemptID, _ loss: LinkLoss) {
    journal.note("attempt \(attempt.rawValue) failed \(loss.meaning)")
  }
  func adapterChanged(_ state: AdapterState) { journal.note("adapter \(state)") }
  func link(_ link: LinkID, answered request: RequestID, with answer: Result<GATTAnswer, GATTFailure>) {
    journal.note("\(link.rawValue) answered \(request.rawValue)")
  }
  func link(_ link: LinkID, value: [UInt8], of characteristic: Characteristic, receivedAt: Timestamp) {
    journal.note("\(link.rawValue) value \(hexadecimal(value))")
  }
  func deviceSeen(as other: DeviceID, _ evidence: [Evidence]) { journal.note("seen as \(other)") }
  func linkTableChanged(_ link: LinkID) { journal.note("\(link.rawValue) table changed") }
  func linkWritable(_ link: LinkID) { journal.note("\(link.rawValue) link writable") }
  func link(_ link: LinkID, closed loss: LinkLoss, inDoubt: [RequestID]) {
    journal.note("\(link.rawValue) link closed \(loss.meaning) \(inDoubt.map(\.rawValue))")
  }
}

/// A radio with one raw peripheral on it, and what happened there.
final class World {
  let executor = ManualExecutor()
  let journal = Journal()
  let radio: VirtualRadio
  let peer = RawPeripheral()
  let handler: NotingHandler
  let device: DeviceID
  private var attempts: UInt64 = 0

  init(_ configuration: VirtualRadio.Configuration = VirtualRadio.Configuration()) throws {
    device = try deviceID(1)
    handler = NotingHandler(journal: journal)
    radio = VirtualRadio(on: executor, configuration: configuration) { [journal] id, channel, _, _ in
      let link = BareLink(id: id, channel: channel, journal: journal)
      channel.open(link)
      return link
    }
    try radio.register(handler, for: device)
    radio.add(peer, as: device)
  }

  @discardableResult
  func dial(_ limit: Duration? = nil, to other: DeviceID? = nil) -> any Attempt {
    attempts += 1
    return radio.dial(
      other ?? device, attempt: AttemptID(rawValue: attempts), options: DialOptions(limit: limit))
  }

  /// Dials, and returns the link that is up then.
  func up() throws -> BareLink {
    dial()
    executor.run()
    guard let link = handler.links.last else { throw NoLink() }
    return link
  }

  var log: [String] { journal.all }
  var statistics: VirtualRadio.Statistics { radio.statistics(of: device) }
}

extension LinkLoss {
  /// What the codes say by themselves.
  var meaning: DisconnectReason { Diagnosis.diagnose(self, at: .ready).reason }
}

struct NoLink: Error {}

func deviceID(_ number: Int) throws -> DeviceID {
  guard let device = DeviceID("C0:DE:00:00:00:0\(number)/random") else { throw NoLink() }
  return device
}
