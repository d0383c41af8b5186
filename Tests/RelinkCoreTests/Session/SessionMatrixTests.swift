import Testing

@testable import RelinkCore

/// Every input in every state: where it leads, and where it is ignored.
@Suite struct SessionMatrixTests {
  /// The columns: a machine in each state, and the letter by which the rows name that state.
  private static let columns: [(name: String, machine: SessionStateMachine)] = [
    ("i never asked", .script()), ("i disconnected", disconnected), ("b backoff", .waitingInBackoff()),
    ("p previous link", .waitingForOldLink()), ("a adapter", .waitingForAdapter()),
    ("l dialling", .dialling()), ("r preparing", .discovering()), ("y ready", .ready()), ("e ended", ended),
  ]

  /// What an input leads to, one letter for each column; a capital one: nothing is asked of the shell.
  private static let rows:
    [(
      input: String, leadsTo: String,
      give: @Sendable (inout SessionStateMachine) -> [SessionStateMachine.Action]
    )] = [
      ("connectRequested", "lllPaLRye", { $0.connectRequested(.number(9), deadline: nil, now: late) }),
      ("connectCancelled", "IIiPAiiYE", { $0.connectCancelled(.number(1), hasOtherWork: false, now: late) }),
      (
        "connectCancelled, other work", "IIbPAlrYE",
        { $0.connectCancelled(.number(1), hasOtherWork: true, now: late) }
      ),
      ("workArrived", "lIBPALRYE", { $0.workArrivedActions }),
      ("disconnectRequested", "iIiiiiiiE", { $0.disconnectRequested(inDoubt: 0, now: late) }),
      ("endRequested", "eeeeeeeeE", { $0.endRequested(.closed, inDoubt: 0, now: late) }),
      (
        "linkUp without dial", "iirrrrrye",
        { $0.linkUp(.number(5), attempt: nil, capabilities: .plain, now: late) }
      ),
      (
        "linkUp of attempt 1", "iippprrye",
        { $0.linkUp(.number(5), attempt: .number(1), capabilities: .plain, now: late) }
      ),
      (
        "linkUp of no attempt", "iippplrye",
        { $0.linkUp(.number(5), attempt: .number(77), capabilities: .plain, now: late) }
      ),
      ("attemptFailed", "IIBPAlRYE", { $0.attemptFailed(.number(1), LinkLoss(.refused), now: late) }),
      (
        "attemptFailed of another", "IIBPALRYE",
        { $0.attemptFailed(.number(77), LinkLoss(.refused), now: late) }
      ),
      (
        "linkClosed", "IIBlALllE",
        { $0.linkClosed(.number(1), LinkLoss(.supervisionTimeout), inDoubt: 0, now: late) }
      ),
      (
        "linkClosed of another", "IIBPALRYE",
        { $0.linkClosed(.number(77), LinkLoss(.supervisionTimeout), inDoubt: 0, now: late) }
      ),
      ("adapter off", "IIapalrYE", { $0.adapterChanged(.off, now: late) }),
      ("adapter missing", "IIapalrYE", { $0.adapterChanged(.missing, now: late) }),
      ("adapter on", "IIBPlLRYE", { $0.adapterChanged(.on, now: late) }),
      ("backoff timer", "IIlPALRYE", { $0.timerFired(.backoff, now: .at(late)) }),
      ("preparation timer", "IIBPALpYE", { $0.timerFired(.preparation, now: .at(late)) }),
      ("connect timer", "IIBPALRYE", { $0.timerFired(.connect, now: .at(late)) }),
      ("adapter timer", "IIBPaLRYE", { $0.timerFired(.adapter, now: .at(late)) }),
      ("mtuExchanged", "IIBPALRYE", { $0.mtuExchanged(100, now: late) }),
      ("tableLearnt", "IIBPALrYE", { $0.tableLearnt(changed: true) }),
      ("subscriptionsRestored", "IIBPALRYE", { $0.subscriptionsRestored(now: late) }),
      ("setupFinished", "IIBPALRYE", { $0.setupFinished(on: Generation(rawValue: 1), .resumed, now: late) }),
      (
        "preparationFailed", "IIBPALpYE",
        { $0.preparationFailed(on: .number(1), LinkLoss(.setupFailed), inDoubt: 0, now: late) }
      ),
      ("tableInvalidated", "IIBPALryE", { $0.tableInvalidated(on: .number(1)) }),
    ]

  private static let late = MonotonicInstant.ms(2_000_000)

  @Test func everyInputLeadsWhereItShouldFromEveryState() {
    for row in Self.rows {
      #expect(row.leadsTo.count == Self.columns.count, "\(row.input)")
      for (letter, column) in zip(row.leadsTo, Self.columns) {
        var machine = column.machine
        let before = machine.state
        let actions = row.give(&machine)
        #expect(Self.letter(machine) == letter.lowercased(), "\(row.input) while \(column.name)")
        #expect(actions.isEmpty == letter.isUppercase, "\(row.input) while \(column.name): \(actions)")
        if letter.isUppercase { #expect(machine.state == before, "\(row.input) while \(column.name)") }
      }
    }
  }

  @Test func theColumnsAreInTheStatesThatTheyName() {
    for column in Self.columns { #expect(Self.letter(column.machine) == String(column.name.prefix(1))) }
  }

  /// A retiring dial beside each state: its end, either way, is heard and waited for.
  @Test(arguments: [true, false])
  func aRetiringDialIsWaitedForAndItsLinkClosed(bringsLink: Bool) {
    var machine = SessionStateMachine.dialling()
    _ = machine.disconnectRequested(inDoubt: 0, now: .ms(0))
    _ = machine.workArrived(now: .ms(0))
    _ = machine.connectRequested(.number(2), deadline: nil, now: .ms(0))
    #expect(Self.letter(machine) == "p")
    if bringsLink {
      _ = machine.linkUp(.number(5), attempt: .number(1), capabilities: .plain, now: .ms(1))
      #expect(Self.letter(machine) == "p")
      _ = machine.linkClosed(.number(5), LinkLoss(.requested), inDoubt: 0, now: .ms(2))
    } else {
      _ = machine.attemptFailed(.number(1), LinkLoss(.requested), now: .ms(1))
    }
    #expect(Self.letter(machine) == "l")
  }

  private static var disconnected: SessionStateMachine {
    var machine = SessionStateMachine.ready()
    _ = machine.disconnectRequested(inDoubt: 0, now: .ms(0))
    _ = machine.linkClosed(.number(1), LinkLoss(.requested), inDoubt: 0, now: .ms(0))
    return machine
  }

  private static var ended: SessionStateMachine {
    var machine = SessionStateMachine.script()
    _ = machine.endRequested(.closed, inDoubt: 0, now: .ms(0))
    return machine
  }

  private static func letter(_ machine: SessionStateMachine) -> String {
    switch machine.snapshot.state {
    case .idle: "i"
    case .waiting(.backoff, _): "b"
    case .waiting(.previousLink, _): "p"
    case .waiting(.adapterOff, _), .waiting(.adapterMissing, _), .waiting(.notPermitted, _),
      .waiting(.adapterBlocked, _), .waiting(.suspended, _):
      "a"
    case .waiting(.userAction, _): "u"
    case .connecting(_, nil): "l"
    case .connecting(_, .some): "r"
    case .ready: "y"
    case .ended: "e"
    }
  }
}

extension SessionStateMachine {
  fileprivate var workArrivedActions: [Action] {
    mutating get {
      if case .wait(let actions) = workArrived(now: .ms(2_000_000)) { actions } else { [] }
    }
  }
}
