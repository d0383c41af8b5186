internal import Relink

/// How a device of a virtual radio takes it to be paired with.
///
/// What a host can show and ask decides too (Core Specification Vol 3 Part H 2.3.5.1): where it lacks what the method
/// needs, the pairing just works, and protects against no one in the middle.
@nonexhaustive
public enum PairingBehavior: Hashable, Sendable {
  /// It agrees; there is nothing to compare. Its keys encrypt links, and no more.
  case justWorks
  /// Both sides show these six digits, and the device's own user says whether they agree.
  case comparison(UInt32, agrees: Bool = true)
  /// The device shows these six digits, to be typed here.
  case passkeyShown(UInt32)
  /// These six digits are shown here, and the device's user types them, right or wrong.
  case passkeyTyped(UInt32, correctly: Bool = true)
  /// It refuses: pairing is not allowed.
  case refuses
  /// It says nothing. After 30 s the host gives the pairing up, and the link with it (Vol 3 Part H 3.4).
  case silent

  /// What is asked here, and what links are worth with the keys that come of it.
  ///
  /// - Parameter abilities: What can be shown and asked here.
  /// - Returns: The question and the level; nil where the device does not go on.
  func method(with abilities: PairingAbilities) -> (question: PairingQuestion, level: SecurityLevel)? {
    let showsAndTakesYes = abilities == .displayYesNo || abilities == .keyboardDisplay
    switch self {
    case .refuses, .silent: return nil
    case .comparison(let digits, _) where showsAndTakesYes: return (.comparison(digits), .secureConnections)
    case .passkeyShown where abilities == .keyboard || abilities == .keyboardDisplay:
      return (.passkeyEntry, .secureConnections)
    case .passkeyTyped(let digits, _) where showsAndTakesYes || abilities == .display:
      return (.passkeyDisplay(digits), .secureConnections)
    case .justWorks, .comparison, .passkeyShown, .passkeyTyped: return (.consent, .encrypted)
    }
  }

  /// Whether the two sides agree, after this answer to this question.
  func accepts(_ answer: PairingAnswer, to question: PairingQuestion) -> Bool {
    if answer == .refuse { return false }
    switch (question, self) {
    case (.comparison, .comparison(_, let agrees)): return agrees
    case (.passkeyEntry, .passkeyShown(let digits)): return answer == .passkey(digits)
    case (.passkeyDisplay, .passkeyTyped(_, let isCorrect)): return isCorrect
    default: return true
    }
  }
}
