internal import BluetoothWire
internal import Relink
internal import RelinkTesting

/// What one seed stands for: a radio, a peripheral, a disk, faults, and what happens to an app meanwhile.
struct Scenario: Sendable {
  /// The tag of a write.
  enum Tag: String, Hashable, Sendable {
    /// Twice is as good as once.
    case idempotent
    /// Never twice.
    case nonIdempotent
    /// The device's value decides.
    case valueProbe
    /// A closure of the app's decides; where it is durable, one with a name.
    case closureProbe
    /// The app decides, later.
    case appProbe

    /// Whether somebody looks at the device before it is repeated.
    var isVerified: Bool { self != .idempotent && self != .nonIdempotent }
  }

  /// How a write is sent.
  enum Way: String, Hashable, Sendable {
    case request
    case long
    case command
    case reliable
  }

  /// A write and everything that is decided about it.
  struct Write: Hashable, Sendable {
    var attribute: Characteristic
    var tag = Tag.nonIdempotent
    var way = Way.request
    var isDurable = false
    var hasID = false
    /// Whether it is submitted, and its handle waited for.
    var isSubmitted = false
    var lane: String?
    var priority = OperationPriority.normal
    var supersedes: String?
    var offerBefore: Duration?
    var dropsLink = false
    var failsUnavailable = false
    var isSensitive = false
    var isUnbroken = false
  }

  /// How a process ends, and what comes then.
  struct Crash: Hashable, Sendable {
    /// When, after the instant of the step.
    enum Moment: Hashable, Sendable {
      case atOnce
      /// At the nth transition of the journal.
      case transition(Int)
      /// When the nth commit is asked for; it may be there or not.
      case commit(Int)
    }

    var moment: Moment
    /// Whether the machine ends with it: commits that need not survive that may be lost.
    var losesPower = false
    /// How long nobody knows after that whether the system clock is right; nil where it is.
    var clockIsWrong: Duration?
    /// How long it takes until the next process is there.
    var downtime: Duration
    /// How many of the commits that need not survive do; nil draws it.
    var keeping: Int?
  }

  /// How a session secures its links to a device of which two values need that.
  struct Security: Hashable, Sendable {
    /// Whether links are secured, and may be paired for that.
    enum Policy: String, Hashable, Sendable, CaseIterable {
      case asRequired
      case requireExistingBond
      case pairing
    }

    var policy = Policy.asRequired
    /// How long it takes to encrypt a link.
    var encryptionTime = Duration.zero
  }

  /// What becomes of keys.
  enum KeyChange: String, Hashable, Sendable, CaseIterable {
    case deviceForgets
    case hostForgets
    case wrongKey
    case deviceRefusesToPair
    /// The user pairs anew, and the app says so.
    case userActs
  }

  /// Something that happens: what the app does, or what is done to it.
  enum Step: Hashable, Sendable {
    case read(Characteristic)
    case write(Write)
    /// The app asks for an earlier write once more, under its ID.
    case again(UInt64)
    case discover
    case connect
    case disconnect
    case subscribe
    case listen
    /// The app watches the journal and takes a few transitions.
    case watchJournal
    /// The app wants the link for itself.
    case exclusive
    /// The app looks at the device and resolves what waits for it.
    case resolve
    case notify
    case changeTable
    case stale
    /// The link is lost, for this reason.
    case cut(HCIErrorCode)
    case crash(Crash)
    case suspend(Duration)
    case setClock(Duration)
    case keys(KeyChange)
  }

  /// A step, when it happens, how long its caller is ready to wait, and when he is cancelled.
  struct Call: Hashable, Sendable {
    var number: UInt64
    var at: Duration
    var step: Step
    var within: Duration
    /// After how long the caller is cancelled; zero is before his call has arrived.
    var cancelledAfter: Duration?
    /// Whether the caller runs on another executor than the session.
    var isElsewhere = false
    /// Whether it happens together with the step before, so that nobody can say which was first.
    var isTogether = false
  }

  /// How long the faults of a drawn scenario last.
  static let faultPhase = Duration.seconds(60)

  static let command = Characteristic(BluetoothUUID(0xFF01))
  static let setting = Characteristic(BluetoothUUID(0xFF02))
  static let stream = Characteristic(BluetoothUUID(0xFF03))
  /// Mostly written durably.
  static let vault = Characteristic(BluetoothUUID(0xFF04))
  static let safe = Characteristic(BluetoothUUID(0xFF05))
  /// The device ends its link over each write of it.
  static let poison = Characteristic(BluetoothUUID(0xFF06))
  /// Written once the world has healed, and by nothing before.
  static let last = Characteristic(BluetoothUUID(0xFF07))

  /// What a device with a bond shows on encrypted links only.
  static let protected: Set<Characteristic> = [setting, vault]

  /// How often a write may be offered on that attribute before the device ended the link over it once more.
  static let poisonOffers = 3

  var seed: UInt64
  var radio = VirtualRadio.Configuration()
  var faults: FaultPlan
  var store = VirtualJournalStore.Configuration()
  var storeFaults: StoreFaultPlan
  var hasStore = true
  var hasDatabaseHash = false
  var hasSetup = false
  /// Whether the device is proven to keep its state over a lost link.
  var resumes = false
  /// Nil where nothing is secured.
  var security: Security?
  var ends = Scenario.faultPhase
  var calls: [Call] = []

  /// Whether nothing else happens in the turn of a step, so that it finds everything as it was before.
  func isAlone(_ number: UInt64) -> Bool {
    guard let index = calls.firstIndex(where: { $0.number == number }) else { return true }
    return !calls[index].isTogether && (index + 1 == calls.count || !calls[index + 1].isTogether)
  }

  /// What is written by a call, if it is a write.
  func write(_ number: UInt64) -> Write? {
    for call in calls where call.number == number {
      if case .write(let write) = call.step { return write }
    }
    return nil
  }
}

extension Scenario.Write {
  /// What it keeps its order in.
  var keys: [String] {
    var keys = ["\(attribute)"]
    if way == .reliable { keys.append("\(second)") }
    if let lane { keys.append("lane \(lane)") }
    return keys
  }

  /// The other attribute of a reliable write.
  var second: Characteristic {
    switch attribute {
    case Scenario.command: Scenario.setting
    case Scenario.vault: Scenario.safe
    case Scenario.safe: Scenario.vault
    default: Scenario.command
    }
  }

  /// What is written.
  func value(_ number: UInt64) -> [UInt8] {
    let tag = (0..<8).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    return tag + [UInt8](repeating: 0xAB, count: way == .long ? 200 : 1)
  }

  /// What is written to the other attribute.
  func secondValue(_ number: UInt64) -> [UInt8] {
    value(number | Scenario.Write.secondPart)
  }

  /// Marks the number in the other value of a reliable write.
  static let secondPart: UInt64 = 1 << 32

  func request(_ number: UInt64) -> GATTRequest {
    switch way {
    case .request: .write(attribute, value(number))
    case .long: .writeLong(attribute, value(number))
    case .command: .writeWithoutResponse(attribute, value(number))
    case .reliable:
      .writeReliably([
        ReliableWrite(attribute, value(number)), ReliableWrite(second, secondValue(number)),
      ])
    }
  }

  func options(within span: Duration) -> WriteOptions {
    WriteOptions(
      within: .after(span), offerBefore: offerBefore, allowsLong: way == .long,
      durability: isDurable ? .durable : .inMemory, lane: lane.map { Lane($0) }, priority: priority,
      supersedes: supersedes.map { SupersedingKey($0) }, onExpiry: dropsLink ? .dropLink : .keepLink,
      ifUnavailable: failsUnavailable ? .fail : .wait, continuity: isUnbroken ? .unbroken : .none,
      isSensitive: isSensitive)
  }
}
