import Relink
import RelinkTesting
import Testing

/// Every rule of the contract suites is seen to fail for an implementation that breaks it.
@Suite struct FlawTests {
  struct Case: Sendable, CustomTestStringConvertible {
    var flaw: Flaw
    var rule: String
    var lingers = false
    var testDescription: String { "\(flaw) breaks \(rule)" }
  }

  static let links: [Case] = [
    Case(flaw: .answersTwice, rule: "answersAReadOnceWithItsValue"),
    Case(flaw: .answersInsideTheCall, rule: "answersAReadOnceWithItsValue"),
    Case(flaw: .writesTwice, rule: "appliesAWriteOnceAndAnswersIt"),
    Case(flaw: .shortensLongWrites, rule: "appliesALongWriteWhole"),
    Case(flaw: .losesAValue, rule: "appliesSeveralValuesTogetherOrSaysThatItCannot"),
    Case(flaw: .losesAnswersToCommands, rule: "answersACommandOnceItWasHandedOver"),
    Case(flaw: .inventsValues, rule: "deliversValuesThatWereAskedFor"),
    Case(flaw: .hidesErrors, rule: "passesOnTheErrorOfTheDevice"),
    Case(flaw: .takesUnknownNames, rule: "refusesAnUnknownName"),
    Case(flaw: .sendsWhatItRefuses, rule: "refusesAValueThatDoesNotFit"),
    Case(flaw: .takesTooMuch, rule: "takesNoMoreThanItSays"),
    Case(flaw: .freesAbandoned, rule: "keepsThePlaceOfAnAbandonedRequest"),
    Case(flaw: .answersTwice, rule: "dropsASecondAnswer"),
    Case(flaw: .closesTwice, rule: "closesOnceWhenTheDeviceEndsIt"),
    Case(flaw: .closesTwice, rule: "closesOnceWhenItIsEndedHere"),
    Case(flaw: .hidesDoubt, rule: "namesWhatIsInDoubt"),
    Case(flaw: .talksBehindClose, rule: "deliversNothingButClosedAfterClose"),
    Case(flaw: .takesRequestsWhenClosed, rule: "refusesRequestsOnceClosed"),
  ]

  static let transports: [Case] = [
    Case(flaw: .bringsUpTwice, rule: "endsEachDialOnceWithALink"),
    Case(flaw: .waitsForEver, rule: "endsADialToNobody"),
    Case(flaw: .ignoresCancel, rule: "leavesNothingOfACancelledDial"),
    Case(flaw: .failsTwice, rule: "endsADialOnceThatIsCancelledAtOnce"),
    Case(flaw: .registersMany, rule: "registersOneHandlerForADevice"),
    Case(flaw: .keepsHandlers, rule: "holdsItsHandlerWeakly"),
    Case(flaw: .listsNothing, rule: "listsTheLinksThatAreUp"),
    Case(flaw: .reusesNames, rule: "dialsAgainAfterALoss"),
    Case(flaw: .claimsTheEndTooEarly, rule: "bringsUpAFreshLinkBehindClosed", lingers: true),
    Case(flaw: .none, rule: "waitsForALinkThatIsStillClosing", lingers: true),
    Case(flaw: .claimsTheEndTooEarly, rule: "letsNoAnswerCrossToTheNextLink", lingers: true),
    Case(flaw: .claimsTheEndTooEarly, rule: "letsNoPreparedPartCrossToTheNextLink", lingers: true),
    Case(flaw: .hidesTheAdapter, rule: "tellsWhenTheAdapterGoes"),
  ]

  @Test(arguments: links) func aFlawOfALinkIsFound(_ wrong: Case) async {
    let report = await LinkContract.check(environment(wrong), only: [wrong.rule])
    #expect(report.failures.count == 1, "\(report)")
  }

  @Test(arguments: transports) func aFlawOfATransportIsFound(_ wrong: Case) async {
    let report = await TransportContract.check(environment(wrong), only: [wrong.rule])
    #expect(report.failures.count == 1, "\(report)")
  }

  @Test(arguments: FlawedChannel.breaks) func aFlawOfAChannelIsFound(_ wrong: FlawedChannel.Case) async {
    let environment = FlawedChannelEnvironment(flaw: wrong.flaw)
    let report = await PDUChannelContract.check(environment, only: [wrong.rule])
    #expect(report.failures.count == 1, "\(report)")
  }

  @Test func noRuleIsMissingHere() {
    #expect(Set(Self.links.map(\.rule)) == Set(LinkContract.names))
    #expect(Set(Self.transports.map(\.rule)) == Set(TransportContract.names))
    #expect(Set(FlawedChannel.breaks.map(\.rule)) == Set(PDUChannelContract.names))
  }

  /// A radio whose links end at once, or one whose links linger, with the flaw around it.
  private func environment(_ wrong: Case) -> VirtualContractEnvironment {
    var configuration = VirtualRadio.Configuration()
    configuration.endsLinks = !wrong.lingers
    var environment = VirtualContractEnvironment.virtualRadio(
      on: ManualExecutor(), configuration: configuration)
    environment.transport = FlawedTransport(environment.transport, wrong.flaw)
    environment.waitsForOldLinks = true
    return environment
  }
}

/// A channel with one flaw around one that has none.
final class FlawedChannel: PDUChannel, PDUChannelHandler {
  enum Flaw: Sendable {
    case losesWhatComes, losesWhatIsSent, closesTwice, talksBehindClose, takesWhenClosed, forgetsWritable
    case keepsItsHandler, deliversInsideTheCall
  }

  struct Case: Sendable, CustomTestStringConvertible {
    var flaw: Flaw
    var rule: String
    var testDescription: String { "\(flaw) breaks \(rule)" }
  }

  static let breaks: [Case] = [
    Case(flaw: .losesWhatComes, rule: "carriesPDUsWholeAndInOrderFromTheDevice"),
    Case(flaw: .losesWhatIsSent, rule: "carriesPDUsWholeAndInOrderToTheDevice"),
    Case(flaw: .deliversInsideTheCall, rule: "carriesPDUsWholeAndInOrderToTheDevice"),
    Case(flaw: .losesWhatComes, rule: "keepsWhatComesBeforeItIsOpened"),
    Case(flaw: .losesWhatIsSent, rule: "carriesTheLongestPDU"),
    Case(flaw: .closesTwice, rule: "closesOnceWhenTheDeviceEndsIt"),
    Case(flaw: .closesTwice, rule: "closesOnceWhenItIsEndedHere"),
    Case(flaw: .talksBehindClose, rule: "deliversNothingButClosedAfterClose"),
    Case(flaw: .takesWhenClosed, rule: "takesNothingOnceClosed"),
    Case(flaw: .forgetsWritable, rule: "saysLaterWhenFullAndThenWritable"),
    Case(flaw: .keepsItsHandler, rule: "holdsItsHandlerWeakly"),
  ]

  private struct State {
    weak var handler: (any PDUChannelHandler)?
    var kept: (any PDUChannelHandler)?
  }

  private let base: any PDUChannel
  private let flaw: Flaw
  private let state = Locked(State())

  init(_ base: any PDUChannel, _ flaw: Flaw) {
    self.base = base
    self.flaw = flaw
  }

  private var handler: (any PDUChannelHandler)? { state.withLock { $0.handler } }
  var maximumPDULength: Int { base.maximumPDULength }

  func open(_ handler: any PDUChannelHandler) {
    state.withLock { state in
      state.handler = handler
      if flaw == .keepsItsHandler { state.kept = handler }
    }
    base.open(self)
  }

  func send(_ pdu: [UInt8]) -> PDUSendResult {
    if flaw == .losesWhatIsSent { return .sent }
    if flaw == .deliversInsideTheCall { handler?.channelWritable() }
    let result = base.send(pdu)
    if flaw == .takesWhenClosed, case .failed = result { return .sent }
    return result
  }

  func close() { base.close() }

  func channelReceived(_ pdu: borrowing RawSpan) {
    if flaw != .losesWhatComes { handler?.channelReceived(pdu) }
  }

  func channelWritable() {
    if flaw != .forgetsWritable { handler?.channelWritable() }
  }

  func channelClosed(_ loss: LinkLoss) {
    if flaw == .talksBehindClose { handler?.channelReceived(([0x0B] as [UInt8]).span.bytes) }
    handler?.channelClosed(loss)
    if flaw == .closesTwice { handler?.channelClosed(loss) }
  }
}

/// Channels of a virtual radio with one flaw.
struct FlawedChannelEnvironment: ChannelContractEnvironment {
  let flaw: FlawedChannel.Flaw
  private let base = VirtualChannelEnvironment()

  init(flaw: FlawedChannel.Flaw) { self.flaw = flaw }

  var driver: any ContractDriver { base.driver }

  func connect() async throws -> (channel: any PDUChannel, far: any ChannelFarEnd) {
    let (channel, far) = try await base.connect()
    return (FlawedChannel(channel, flaw), far)
  }
}
