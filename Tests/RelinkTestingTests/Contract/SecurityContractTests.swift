import Relink
import RelinkTesting
import Testing

/// The contract of securable links, over the virtual radio, and over it with each flaw that a rule is there to find.
@Suite struct SecurityContractTests {
  @Test(arguments: [Duration.zero, .milliseconds(15)], [true, false])
  func linksOverTheVirtualRadioKeepTheContract(latency: Duration, exact: Bool) async {
    var configuration = VirtualRadio.Configuration()
    configuration.latency = latency
    configuration.encryptionTime = latency
    configuration.knowsExactReason = exact
    let environment = VirtualContractEnvironment.virtualRadio(
      on: ManualExecutor(), configuration: configuration)
    let report = await SecurityContract.check(environment)
    #expect(report.failures == [])
    #expect(report.skipped == [])
    #expect(report.checks.count == SecurityContract.names.count)
  }

  @Test func aPlatformThatSecuresByItselfIsNotAsked() async {
    let report = await SecurityContract.check(VirtualContractEnvironment.managedRadio(on: ManualExecutor()))
    #expect(report.failures == [])
    #expect(report.skipped.count == SecurityContract.names.count)
  }

  struct Case: Sendable, CustomTestStringConvertible {
    var flaw: SecurityFlaw
    var rule: String
    var testDescription: String { "\(flaw) breaks \(rule)" }
  }

  static let flaws: [Case] = [
    Case(flaw: .claimsTooMuch, rule: "securesWithTheBondThatThereIs"),
    Case(flaw: .saysTwice, rule: "saysOnceThatALinkIsSecured"),
    Case(flaw: .pairsAnyway, rule: "pairsNothingUnasked"),
    Case(flaw: .neverPairs, rule: "pairsWhereItMay"),
    Case(flaw: .agreesToEverything, rule: "usesNothingThatWasRefused"),
    Case(flaw: .blursReasons, rule: "saysThatTheDeviceRefused"),
    Case(flaw: .answersWhatItKeeps, rule: "keepsARefusedRequestUntilTheLinkIsSecured"),
    Case(flaw: .hidesDeclined, rule: "passesTheAnswerOnWhenItIsDeclined"),
    Case(flaw: .pairsAnyway, rule: "passesTheAnswerOnWhenTheLinkIsNotSecured"),
    Case(flaw: .doubtsWhatItKept, rule: "doubtsNothingThatItKept"),
    Case(flaw: .ignoresAbandoning, rule: "asksNothingAgainThatWasAbandoned"),
    Case(flaw: .blursReasons, rule: "endsInKeysWhereTheDeviceForgot"),
    Case(flaw: .keepsBonds, rule: "knowsAndRemovesBonds"),
  ]

  @Test(arguments: flaws) func aFlawIsFound(_ wrong: Case) async {
    let base = VirtualContractEnvironment.virtualRadio(on: ManualExecutor())
    let flawed = base.with(FlawedSecurity(base.transport, wrong.flaw))
    let report = await SecurityContract.check(flawed, only: [wrong.rule])
    #expect(report.failures.count == 1, "\(report)")
  }

  @Test func noRuleIsMissingHere() {
    #expect(Set(Self.flaws.map(\.rule)) == Set(SecurityContract.names))
  }
}

extension VirtualContractEnvironment {
  fileprivate func with(_ transport: any Transport) -> VirtualContractEnvironment {
    var other = self
    other.transport = transport
    return other
  }
}

/// What an implementation can get wrong about security.
enum SecurityFlaw: Sendable {
  case claimsTooMuch, saysTwice, pairsAnyway, neverPairs, agreesToEverything, blursReasons, answersWhatItKeeps
  case hidesDeclined, doubtsWhatItKept, ignoresAbandoning, keepsBonds
}

/// A radio with one flaw in how it secures its links.
final class FlawedSecurity: BondingTransport {
  private let base: any Transport
  private let flaw: SecurityFlaw
  private let handlers = Locked<[DeviceID: Handler]>([:])

  init(_ base: any Transport, _ flaw: SecurityFlaw) {
    self.base = base
    self.flaw = flaw
  }

  var executor: any SessionExecutor { base.executor }
  var capabilities: TransportCapabilities { base.capabilities }
  func adapterState(for device: DeviceID) -> AdapterState { base.adapterState(for: device) }
  func existingLinks() -> [DeviceID] { base.existingLinks() }

  func register(_ handler: any LinkHandler, for device: DeviceID) throws(RelinkError) {
    let wrapped = Handler(handler, flaw, executor)
    try base.register(wrapped, for: device)
    handlers.withLock { $0[device] = wrapped }
  }

  func unregister(_ device: DeviceID) {
    handlers.withLock { $0[device] = nil }
    base.unregister(device)
  }

  func dial(_ device: DeviceID, attempt: AttemptID, options: DialOptions) -> any Attempt {
    base.dial(device, attempt: attempt, options: options)
  }

  func bond(with device: DeviceID) -> BondKnowledge {
    (base as? any BondingTransport)?.bond(with: device) ?? .unknown
  }

  func removeBond(with device: DeviceID, _ done: @escaping @Sendable (RelinkError?) -> Void) {
    guard flaw == .keepsBonds else {
      return (base as? any BondingTransport)?.removeBond(with: device, done) ?? ()
    }
    executor.post { done(nil) }
  }

  /// Passes deliveries on, with the flaw.
  private final class Handler: LinkHandler {
    private let target: any LinkHandler
    private let flaw: SecurityFlaw
    private let executor: any SessionExecutor
    private let kept = Locked<[LinkID: RequestID]>([:])

    init(_ target: any LinkHandler, _ flaw: SecurityFlaw, _ executor: any SessionExecutor) {
      self.target = target
      self.flaw = flaw
      self.executor = executor
    }

    func linkUp(_ link: any Link, attempt: AttemptID?) {
      guard let link = link as? any SecurableLink else { return }
      target.linkUp(
        SecuredLink(link, flaw) { [kept] id in kept.withLock { $0[link.id] = id } }, attempt: attempt)
    }

    func attemptFailed(_ attempt: AttemptID, _ loss: LinkLoss) { target.attemptFailed(attempt, loss) }
    func adapterChanged(_ state: AdapterState) { target.adapterChanged(state) }
    func link(_ link: LinkID, answered request: RequestID, with answer: Result<GATTAnswer, GATTFailure>) {
      if flaw == .hidesDeclined, case .failure(.rejected) = answer { return }
      target.link(link, answered: request, with: answer)
    }
    func link(_ link: LinkID, value: [UInt8], of characteristic: Characteristic, receivedAt: Timestamp) {
      target.link(link, value: value, of: characteristic, receivedAt: receivedAt)
    }
    func linkTableChanged(_ link: LinkID) { target.linkTableChanged(link) }
    func linkWritable(_ link: LinkID) { target.linkWritable(link) }

    func link(_ link: LinkID, needs level: SecurityLevel) {
      target.link(link, needs: level)
      if flaw == .answersWhatItKeeps, let id = kept.withLock({ $0[link] }) {
        target.link(link, answered: id, with: .failure(.rejected(.insufficientEncryption)))
      }
    }

    func link(_ link: LinkID, secured level: SecurityLevel) {
      target.link(link, secured: flaw == .claimsTooMuch ? .secureConnections : level)
      if flaw == .saysTwice { target.link(link, secured: level) }
    }

    func link(_ link: LinkID, notSecured loss: LinkLoss) {
      target.link(link, notSecured: flaw == .blursReasons ? LinkLoss(.unknown) : loss)
    }

    func link(_ link: LinkID, asks question: PairingQuestion, _ responder: PairingResponder) {
      if flaw == .agreesToEverything || flaw == .pairsAnyway { responder(.accept) }
      target.link(link, asks: question, responder)
    }

    func link(_ link: LinkID, closed loss: LinkLoss, inDoubt: [RequestID]) {
      let doubted = flaw == .doubtsWhatItKept ? kept.withLock { $0[link].map { [$0] } } : nil
      target.link(
        link, closed: flaw == .blursReasons ? LinkLoss(.unknown) : loss, inDoubt: doubted ?? inDoubt)
    }
  }

  /// Passes calls on, with the flaw.
  private final class SecuredLink: SecurableLink {
    private let base: any SecurableLink
    private let flaw: SecurityFlaw
    private let asked: @Sendable (RequestID) -> Void

    init(_ base: any SecurableLink, _ flaw: SecurityFlaw, _ asked: @escaping @Sendable (RequestID) -> Void) {
      self.base = base
      self.flaw = flaw
      self.asked = asked
    }

    var id: LinkID { base.id }
    var capabilities: LinkCapabilities { base.capabilities }
    var roundTrips: Int { base.roundTrips }

    func perform(_ request: GATTRequest, id: RequestID) -> LinkAcceptance {
      asked(id)
      return base.perform(request, id: id)
    }

    func abandon(_ id: RequestID) -> Bool { flaw == .ignoresAbandoning ? true : base.abandon(id) }
    func close() { base.close() }

    func secure(to level: SecurityLevel, keys: SecurityPolicy.KeySource) {
      switch flaw {
      case .pairsAnyway: base.secure(to: level, keys: .bondOrPairing(.none))
      case .neverPairs: base.secure(to: level, keys: .bond)
      default: base.secure(to: level, keys: keys)
      }
    }

    func declineSecurity() { base.declineSecurity() }
  }
}
