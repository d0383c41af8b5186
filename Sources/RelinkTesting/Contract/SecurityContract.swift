internal import Relink

/// The rules that every ``Relink/SecurableLink`` and ``Relink/BondingTransport`` keep.
///
/// Like the other suites it works on a manual executor and on an event loop, and depends on no test library.
public enum SecurityContract {
  typealias Check = @Sendable (SecurityBench) async throws -> Void

  /// Tries the rules.
  ///
  /// - Parameters:
  ///   - environment: The implementation with its device.
  ///   - names: The rules to try; nil for all.
  /// - Returns: What came out.
  public static func check(
    _ environment: any SecurityContractEnvironment, only names: Set<String>? = nil
  ) async -> ContractReport {
    await runChecks("Security", names, checks) { body in
      let bench = SecurityBench(environment)
      try bench.links.register()
      let result: Result<Void, any Error>
      do {
        try await body(bench)
        result = .success(())
      } catch { result = .failure(error) }
      await bench.links.finish()
      _ = await environment.keys.setBond(atDevice: false, here: false)
      _ = await environment.keys.setPairing(true)
      // The cause of whatever else went wrong.
      try require(
        bench.links.recorder.deliveriesInsideCalls == 0,
        "something was delivered inside the call that caused it")
      try result.get()
    }
  }

  /// The names of the rules.
  public static var names: [String] { checks.map(\.name) }

  private static let checks: [(name: String, body: Check)] = [
    ("securesWithTheBondThatThereIs", securesWithBond),
    ("saysOnceThatALinkIsSecured", saysOnce),
    ("pairsNothingUnasked", pairsNothing),
    ("pairsWhereItMay", pairs),
    ("usesNothingThatWasRefused", refusedHere),
    ("saysThatTheDeviceRefused", refusedThere),
    ("keepsARefusedRequestUntilTheLinkIsSecured", keepsRequest),
    ("passesTheAnswerOnWhenItIsDeclined", declined),
    ("passesTheAnswerOnWhenTheLinkIsNotSecured", notSecured),
    ("doubtsNothingThatItKept", keptIsNotInDoubt),
    ("asksNothingAgainThatWasAbandoned", abandoned),
    ("endsInKeysWhereTheDeviceForgot", deviceForgot),
    ("knowsAndRemovesBonds", bonds),
  ]

  // MARK: - Securing

  private static func securesWithBond(_ bench: SecurityBench) async throws {
    try await bench.setBond(atDevice: true, here: true)
    let link = try await bench.connect()
    let asked = await bench.pairingRequests()
    await bench.secure(link, .bond)
    let level = try await bench.secured(link)
    try require(level >= .encrypted, "a link was secured to \(level)")
    let shown = await bench.links.driver.perform { link.capabilities.security }
    try require(shown == level, "a link that is secured to \(level) says \(shown)")
    try require(await bench.pairingRequests() == asked, "the device was asked to pair")
  }

  private static func saysOnce(_ bench: SecurityBench) async throws {
    try await bench.setBond(atDevice: true, here: true)
    let link = try await bench.connect()
    await bench.secure(link, .bond)
    await bench.secure(link, .bond)
    _ = try await bench.secured(link)
    await bench.links.driver.settle()
    try require(bench.endings(link).count == 1, "two calls at once had \(bench.endings(link)) as their ends")
    // A link that has what is asked for says so all the same.
    await bench.secure(link, .bond)
    _ = await bench.links.driver.wait { bench.endings(link).count >= 2 }
    await bench.links.driver.settle()
    try require(bench.endings(link).count == 2, "a third call later: \(bench.endings(link))")
  }

  private static func pairsNothing(_ bench: SecurityBench) async throws {
    try await bench.setBond(atDevice: false, here: false)
    let link = try await bench.connect()
    let asked = await bench.pairingRequests()
    await bench.secure(link, .bond)
    let loss = try await bench.notSecured(link)
    try require(loss.reason == .bondMissing, "without a bond it ended with \(loss)")
    try require(await bench.pairingRequests() == asked, "the device was asked to pair")
    try await bench.works(link)
  }

  private static func pairs(_ bench: SecurityBench) async throws {
    try await bench.setBond(atDevice: false, here: false)
    try await bench.setPairing(true)
    let link = try await bench.connect()
    await bench.secure(link, .bondOrPairing(.none))
    try await bench.answerQuestion(.accept, on: link)
    let level = try await bench.secured(link)
    try require(level >= .encrypted, "a link was secured to \(level)")
    if let bond = await bench.bond() {
      guard case .bonded(let record) = bond else {
        throw ContractEnd.failed("behind a pairing the bond is \(bond)")
      }
      try require(record.device == bench.environment.device, "the bond is one with \(record.device)")
    }
  }

  private static func refusedHere(_ bench: SecurityBench) async throws {
    try await bench.setBond(atDevice: false, here: false)
    try await bench.setPairing(true)
    let link = try await bench.connect()
    await bench.secure(link, .bondOrPairing(.none))
    try await bench.answerQuestion(.refuse, on: link)
    _ = try await bench.failed(link)
    if let bond = await bench.bond() {
      try require(bond == .none, "behind a pairing that was refused the bond is \(bond)")
    }
  }

  private static func refusedThere(_ bench: SecurityBench) async throws {
    try await bench.setBond(atDevice: false, here: false)
    try await bench.setPairing(false)
    let link = try await bench.connect()
    await bench.secure(link, .bondOrPairing(.none))
    try await bench.answerQuestion(.accept, on: link)
    let loss = try await bench.failed(link)
    let reason = Diagnosis.diagnose(loss, at: .preparing).reason
    try require(reason == .pairingFailed, "a pairing that the device refused ended with \(loss)")
  }

  // MARK: - Requests that are kept

  private static func keepsRequest(_ bench: SecurityBench) async throws {
    try await bench.setBond(atDevice: true, here: true)
    let link = try await bench.connect()
    let before = await bench.environment.keys.protectedWrites().count
    let id = try await bench.keep(.write(bench.name, [1]), on: link)
    await bench.secure(link, .bond)
    _ = try await bench.secured(link)
    let answers = await bench.answers(to: id, on: link)
    try require(answers == [.success(.done)], "the answers were \(answers)")
    let writes = await bench.environment.keys.protectedWrites().dropFirst(before)
    try require(Array(writes) == [[1]], "the device applied \(Array(writes))")
  }

  private static func declined(_ bench: SecurityBench) async throws {
    let link = try await bench.connect()
    let id = try await bench.keep(.read(bench.name), on: link)
    await bench.links.driver.perform { [recorder = bench.links.recorder] in
      recorder.calling { link.declineSecurity() }
    }
    try await requireRejected(bench, id, link)
  }

  private static func notSecured(_ bench: SecurityBench) async throws {
    try await bench.setBond(atDevice: false, here: false)
    let link = try await bench.connect()
    let id = try await bench.keep(.read(bench.name), on: link)
    await bench.secure(link, .bond)
    _ = try await bench.notSecured(link)
    try await requireRejected(bench, id, link)
  }

  private static func requireRejected(
    _ bench: SecurityBench, _ id: RequestID, _ link: any SecurableLink
  ) async throws {
    let answers = await bench.answers(to: id, on: link)
    guard answers.count == 1, case .failure(.rejected) = answers.first else {
      throw ContractEnd.failed("what was kept was answered with \(answers)")
    }
    try await bench.works(link)
  }

  private static func keptIsNotInDoubt(_ bench: SecurityBench) async throws {
    let link = try await bench.connect()
    let before = await bench.environment.keys.protectedWrites().count
    let id = try await bench.keep(.write(bench.name, [1]), on: link)
    await bench.links.peer.endLink()
    try await bench.links.closed(link)
    await bench.links.driver.settle()
    let closing = bench.links.recorder.closings(of: link.id).first
    try require(closing?.inDoubt == [], "in doubt were \(String(describing: closing?.inDoubt))")
    try require(
      bench.links.recorder.answers(to: id, on: link.id).isEmpty, "what was kept was answered behind the end")
    try require(
      await bench.environment.keys.protectedWrites().count == before, "the device applied what it refused")
  }

  private static func abandoned(_ bench: SecurityBench) async throws {
    try await bench.setBond(atDevice: true, here: true)
    let link = try await bench.connect()
    let before = await bench.environment.keys.protectedWrites().count
    let id = try await bench.keep(.write(bench.name, [1]), on: link)
    let isCertain = await bench.links.driver.perform { [recorder = bench.links.recorder] in
      recorder.calling { link.abandon(id) }
    }
    try require(isCertain, "what was kept is said to have an effect perhaps")
    await bench.secure(link, .bond)
    _ = try await bench.secured(link)
    _ = await bench.answers(to: id, on: link)
    try require(
      await bench.environment.keys.protectedWrites().count == before, "what was abandoned was asked again")
    try await bench.works(link)
  }

  // MARK: - Bonds

  private static func deviceForgot(_ bench: SecurityBench) async throws {
    try await bench.setBond(atDevice: false, here: true)
    let link = try await bench.connect()
    let asked = await bench.pairingRequests()
    await bench.secure(link, .bond)
    let loss = try await bench.failed(link)
    var history = DiagnosisHistory(bond: .bondedElsewhere, wasEncryptionAsked: true)
    history.keyFailures = 1
    let finding = Diagnosis.diagnose(loss, at: .preparing, history: history)
    try require(
      finding.recovery == .removePairingAndPairAgain, "a bond that the device forgot ended with \(loss)")
    try require(await bench.pairingRequests() == asked, "the device was asked to pair")
  }

  private static func bonds(_ bench: SecurityBench) async throws {
    guard let transport = bench.environment.transport as? any BondingTransport else {
      throw ContractEnd.skipped("the transport knows no bonds")
    }
    let device = bench.environment.device
    for isBonded in [true, false] {
      try await bench.setBond(atDevice: isBonded, here: isBonded)
      let bond = await bench.bond()
      if isBonded {
        guard case .bonded(let record) = bond else {
          throw ContractEnd.failed("a bond is said to be \(bond ?? .unknown)")
        }
        try require(record.device == device, "the bond is one with \(record.device)")
      } else {
        try require(bond == BondKnowledge.none, "no bond is said to be \(bond ?? .unknown)")
      }
      let removal = Locked(Removal())
      await bench.links.driver.perform {
        transport.removeBond(with: device) { error in
          removal.withLock { $0.ends.append($0.isCalling ? RelinkError(.invalidArgument, "inside") : error) }
        }
        removal.withLock { $0.isCalling = false }
      }
      _ = await bench.links.driver.wait { !removal.withLock { $0.ends.isEmpty } }
      await bench.links.driver.settle()
      let ends = removal.withLock { $0.ends }
      try require(ends == [nil], "removing a bond ended with \(ends)")
      try require(await bench.bond() == BondKnowledge.none, "a bond that was removed is there")
    }
  }

  private struct Removal {
    var isCalling = true
    var ends: [RelinkError?] = []
  }
}
