public import Relink

extension VirtualRadio {
  /// The kinds of deliveries that a test can hold back.
  @nonexhaustive
  public enum DeliveryKind: String, Hashable, Sendable, CaseIterable {
    /// A PDU on its way to the device.
    case towardsPeer
    /// A PDU on its way to the central.
    case towardsCentral
    /// The word that a link is up.
    case linkUp
    /// The word that a dial has ended without a link.
    case attemptFailed
    /// The word that a link is gone.
    case closed
    /// The word that a channel takes PDUs again.
    case writable
    /// The word that the adapter has changed its state.
    case adapterChanged
    /// The word that a link is secured, or is not, and the questions of a pairing.
    case security
    /// The word that a device was seen under another name.
    case seen
  }

  /// A delivery that waits for the test.
  public struct HeldDelivery: Identifiable, Hashable, Sendable, CustomStringConvertible {
    /// The name of the delivery.
    public let id: Int
    /// What kind it is.
    public let kind: DeliveryKind
    /// The device that it concerns.
    public let device: DeviceID
    /// The number of the ACL link that it belongs to, where it belongs to one.
    public let linkNumber: Int?
    /// The bytes of a PDU.
    public let pdu: [UInt8]?

    /// The name, the kind, the link and the bytes on one line.
    public var description: String {
      var parts = ["\(id)", kind.rawValue]
      if let linkNumber { parts.append("#\(linkNumber)") }
      if let pdu { parts.append(hexadecimal(pdu)) }
      return parts.joined(separator: " ")
    }
  }
}

extension RadioState {
  enum Payload: Sendable {
    case request(DeviceID, Int, [UInt8])
    case word(Word)
  }

  struct Held {
    var id: Int
    var payload: Payload

    var delivery: VirtualRadio.HeldDelivery {
      switch payload {
      case .request(let device, let number, let pdu):
        VirtualRadio.HeldDelivery(id: id, kind: .towardsPeer, device: device, linkNumber: number, pdu: pdu)
      case .word(let word):
        VirtualRadio.HeldDelivery(
          id: id, kind: word.kind, device: word.device, linkNumber: word.channel?.linkNumber, pdu: word.pdu)
      }
    }
  }

  /// Holds a word back if it is of a kind that is held.
  mutating func hold(_ word: Word) -> Bool {
    guard holding.contains(word.kind) else { return false }
    hold(.word(word))
    return true
  }

  mutating func hold(_ payload: Payload) {
    held.append(Held(id: newNumber(), payload: payload))
  }

  /// What delivers a held delivery, or a copy of it.
  func release(_ payload: Payload) -> Effect? {
    switch payload {
    case .word(let word): return .tell(word)
    case .request(_, let number, let pdu):
      // A request is carried out by a device that is still there, or not at all.
      guard let link = links[number], let peer = link.peer, let peerLink = link.peerLink else { return nil }
      return .tellPeer(peer, peerLink, pdu)
    }
  }
}

extension RadioState.Word {
  var kind: VirtualRadio.DeliveryKind {
    switch self {
    case .linkUp: .linkUp
    case .attemptFailed: .attemptFailed
    case .adapterChanged: .adapterChanged
    case .received: .towardsCentral
    case .writable: .writable
    case .closed: .closed
    case .secured, .notSecured, .asks: .security
    case .seen: .seen
    }
  }

  var device: DeviceID {
    switch self {
    case .linkUp(let device, _, _), .attemptFailed(let device, _, _), .adapterChanged(let device, _),
      .received(let device, _, _), .writable(let device, _), .closed(let device, _, _),
      .secured(let device, _, _), .notSecured(let device, _, _), .asks(let device, _, _, _),
      .seen(let device, _, _):
      device
    }
  }

  var channel: VirtualChannel? {
    switch self {
    case .linkUp(_, let channel, _), .received(_, let channel, _), .writable(_, let channel),
      .closed(_, let channel, _), .secured(_, let channel, _), .notSecured(_, let channel, _),
      .asks(_, let channel, _, _):
      channel
    case .attemptFailed, .adapterChanged, .seen: nil
    }
  }

  var pdu: [UInt8]? {
    if case .received(_, _, let pdu) = self { pdu } else { nil }
  }
}
