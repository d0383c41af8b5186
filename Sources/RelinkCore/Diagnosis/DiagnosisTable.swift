public import BluetoothWire

/// What each code means by itself, without a history: for every source, every code and every moment one row.
///
/// It is data. A device or a controller that uses a code in a way of its own gets another row:
///
/// ```swift
/// var table = DiagnosisTable.standard
/// table.setRow(
///   DiagnosisTable.Row(.remotePowerOff, .retryConnection, .medium, "This pump says 0x13 when its battery is out."),
///   for: .hci(.remoteUserTerminatedConnection))
/// ```
///
/// Rules that need the history (``Diagnosis``) are applied to what the table says.
public struct DiagnosisTable: Hashable, Sendable {
  /// What a code means.
  public struct Row: Hashable, Sendable {
    /// Why the link or the attempt ended.
    public var reason: DisconnectReason
    /// The next step.
    public var recovery: RecoveryAction
    /// How sure that is.
    public var confidence: Confidence
    /// Where the reading comes from, or what to think of, in a sentence.
    public var note: String

    /// Makes a row.
    public init(
      _ reason: DisconnectReason, _ recovery: RecoveryAction, _ confidence: Confidence, _ note: String = ""
    ) {
      self.reason = reason
      self.recovery = recovery
      self.confidence = confidence
      self.note = note
    }
  }

  /// A source together with its code.
  @nonexhaustive
  public enum Key: Hashable, Sendable {
    /// The controller's reason.
    case hci(HCIErrorCode)
    /// The controller's word on switching encryption on.
    case encryption(HCIErrorCode)
    /// The kernel's reason in Device Disconnected (`doc/mgmt-api.txt` of BlueZ).
    case management(UInt8)
    /// The kernel's status of a pairing (`doc/mgmt-api.txt` of BlueZ).
    case pairing(UInt8)
    /// A Linux error number of a connect.
    case dial(Int32)
    /// A Linux error number of a socket that was connected.
    case socket(Int32)
    /// The device's answer to a request without which the session cannot become ready.
    case att(ATTErrorCode)
    /// End of file on the socket.
    case endOfFile

    /// The key of a fact at a moment; nil for facts that are words.
    public init?(_ evidence: Evidence, at moment: LinkMoment) {
      switch evidence {
      case .hci(let code): self = .hci(code)
      case .encryption(let code): self = .encryption(code)
      case .management(let reason): self = .management(reason)
      case .pairing(let status): self = .pairing(status)
      case .system(let number, let call):
        switch call {
        case .connect: self = .dial(number)
        case .receive, .send: self = .socket(number)
        case .pendingError: self = moment == .dialling ? .dial(number) : .socket(number)
        }
      case .att(let code): self = .att(code)
      case .endOfFile: self = .endOfFile
      case .observation: return nil
      }
    }
  }

  private struct Place: Hashable {
    var key: Key
    var moment: LinkMoment?
  }

  private var changed: [Place: Row] = [:]

  /// The table of the project.
  public static let standard = DiagnosisTable()

  private init() {}

  /// Gives a code another meaning; without a moment in every moment that has no row of its own.
  public mutating func setRow(_ row: Row, for key: Key, at moment: LinkMoment? = nil) {
    changed[Place(key: key, moment: moment)] = row
  }

  /// What a code means at a moment.
  public func row(for key: Key, at moment: LinkMoment) -> Row {
    changedRow(for: key, at: moment) ?? Self.standardRow(for: key, at: moment)
  }

  /// The row that was set for a code, if one was.
  func changedRow(for key: Key, at moment: LinkMoment) -> Row? {
    changed[Place(key: key, moment: moment)] ?? changed[Place(key: key, moment: nil)]
  }
}
