internal import BluetoothWire

/// The name of one link, from up to gone, in a ``BlueZHost``; never used twice.
struct LinkName: RawRepresentable, Hashable, Sendable {
  var rawValue: UInt64
}

/// What controllers have told of the links that are ours.
///
/// A handle names a link only while that lives: the next one has it again. So a link is taken down when it is up, with
/// everything read that was told before, and what is told of its handle from then on is about it until it is gone. What
/// is told of a handle that no link of ours has changes nothing and is counted.
struct ControllerLedger {
  /// The handle of a link on its adapter.
  struct Place: Hashable {
    var adapter: UInt16
    var handle: UInt16
  }

  /// What was told of one link.
  struct Facts: Equatable {
    /// The latest status of switching encryption, or of replacing its key.
    var encryption: HCIErrorCode?
    /// Why it is gone.
    var reason: HCIErrorCode?
    /// A fault of the controller while the link was there.
    var hardwareError: UInt8?
  }

  private var living: [Place: LinkName] = [:]
  private var known: [LinkName: Facts] = [:]
  /// How many events were about no link of ours.
  private(set) var stale = 0

  /// How many links are kept; at most one for each link that is up or being explained.
  var count: Int { known.count }

  /// A link is up; whoever had its handle before is gone.
  mutating func cameUp(_ link: LinkName, at place: Place) {
    living[place] = link
    known[link] = Facts()
  }

  /// A controller told something.
  mutating func heard(_ event: HCIEvent, from adapter: UInt16) {
    switch event {
    case .disconnectionComplete(let status, let handle, let reason):
      // With another status the link could not be ended, and lives.
      guard status == .success else { return }
      let place = Place(adapter: adapter, handle: handle)
      tell(place) { $0.reason = reason }
      living[place] = nil
    case .encryptionChange(let status, let handle, _, _),
      .encryptionKeyRefreshComplete(let status, let handle):
      tell(Place(adapter: adapter, handle: handle)) { $0.encryption = status }
    case .hardwareError(let code):
      for (place, link) in living where place.adapter == adapter { known[link]?.hardwareError = code }
    default:
      break
    }
  }

  private mutating func tell(_ place: Place, _ change: (inout Facts) -> Void) {
    guard let link = living[place], var facts = known[link] else {
      stale += 1
      return
    }
    change(&facts)
    known[link] = facts
  }

  /// Nothing more is told by the controller of an adapter.
  mutating func adapterLeft(_ adapter: UInt16) {
    living = living.filter { $0.key.adapter != adapter }
  }

  /// What was told of a link; nil for one that was never seen.
  func facts(of link: LinkName) -> Facts? { known[link] }

  /// Whether the end of the link is still to be told.
  func owes(_ link: LinkName) -> Bool { living.values.contains(link) }

  /// Nobody asks for a link any more.
  mutating func forget(_ link: LinkName) {
    known[link] = nil
    living = living.filter { $0.value != link }
  }
}
