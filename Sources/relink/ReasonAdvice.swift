internal import Relink

/// What a reason means, and what comes of it: the next step, and what the session does by itself.
struct ReasonAdvice {
  /// What holds in some situations, for some of the losses in a row.
  struct Row: Equatable {
    var when: String
    /// What the session says the reason is, where losses in a row make it another one.
    var reason: DisconnectReason
    var recovery: RecoveryAction
    var course: LossStory.Course
  }

  var reason: DisconnectReason
  var rows: [Row]

  /// A loss, and what tells of it where that decides the next step.
  private struct Way {
    var loss: LinkLoss
    var source: CodeSource?
    var codes: [String] = []

    var words: String? { source.map { "by \($0.rawValue) \(codes.joined(separator: ", "))" } }
  }

  /// Every reason, each way in which it comes up played: as the transport or the session knows it, and by the codes that
  /// have another next step by themselves.
  static func all() -> [ReasonAdvice] {
    var byCode: [DisconnectReason: [Way]] = [:]
    for reading in CodeSource.allCases.flatMap({ $0.readings() }) {
      let loss = LinkLoss(.unknown, evidence: [reading.evidence])
      let finding = Diagnosis.diagnose(loss, at: .preparing)
      guard finding.recovery != nextStep(LinkLoss(finding.reason)) else { continue }
      var ways = byCode[finding.reason] ?? []
      if let index = ways.firstIndex(where: {
        $0.source == reading.source && nextStep($0.loss) == finding.recovery
      }) {
        ways[index].codes.append(reading.code)
      } else {
        ways.append(Way(loss: loss, source: reading.source, codes: [reading.code]))
      }
      byCode[finding.reason] = ways
    }
    return DisconnectReason.allCases.map { reason in
      let ways = [Way(loss: LinkLoss(reason))] + (byCode[reason] ?? [])
      return ReasonAdvice(reason: reason, rows: ways.flatMap { rows($0, at: reason.usualMoments) })
    }
  }

  private static func nextStep(_ loss: LinkLoss) -> RecoveryAction {
    Diagnosis.diagnose(loss, at: .preparing).recovery
  }

  private static func rows(_ way: Way, at moments: [LinkMoment]) -> [Row] {
    var groups: [(steps: [LossStory.Step], situations: [LossStory.Situation])] = []
    for isBonded in [false, true] {
      for moment in moments {
        let situation = LossStory.Situation(moment: moment, isBonded: isBonded)
        let steps = LossStory.play(way.loss, in: situation)
        if let index = groups.firstIndex(where: { $0.steps == steps }) {
          groups[index].situations.append(situation)
        } else {
          groups.append((steps, [situation]))
        }
      }
    }
    // What holds otherwise comes last.
    let named = groups.map { (steps: $0.steps, words: words($0.situations, of: moments)) }
    let ordered = named.filter { $0.words != nil } + named.filter { $0.words == nil }
    return ordered.flatMap { steps, situation in
      let place = groups.count == 1 ? nil : situation ?? "otherwise"
      return runs(steps).map { run in
        let words = [way.words, place, run.times].compactMap(\.self)
        return Row(
          when: words.isEmpty ? "always" : words.joined(separator: ", "), reason: run.step.reason,
          recovery: run.step.recovery, course: run.step.course)
      }
    }
  }

  /// Some of the situations in words; nil for a mixture.
  private static func words(_ situations: [LossStory.Situation], of moments: [LinkMoment]) -> String? {
    let plain = situations.filter { !$0.isBonded }.map(\.moment)
    let bonded = situations.filter(\.isBonded).map(\.moment)
    if plain == bonded { return LinkMoment.words(plain) }
    guard plain.isEmpty || bonded.isEmpty else { return nil }
    let bond = bonded.isEmpty ? "without a bond" : "with a bond"
    let some = plain + bonded
    return some == moments ? bond : "\(bond), \(LinkMoment.words(some))"
  }

  /// The losses in a row that lead to the same, with how often in words; nil where all of them do.
  private static func runs(_ steps: [LossStory.Step]) -> [(step: LossStory.Step, times: String?)] {
    var runs: [(step: LossStory.Step, range: ClosedRange<Int>)] = []
    for (number, step) in zip(1..., steps) {
      if let last = runs.last, last.step == step {
        runs[runs.count - 1].range = last.range.lowerBound...number
      } else {
        runs.append((step, number...number))
      }
    }
    return runs.map { step, range in
      switch (range.lowerBound, range.upperBound) {
      case (1, LossStory.length): (step, nil)
      case (1, 1): (step, "the first time")
      case (1, let last): (step, "the first \(last) times in a row")
      case (let first, LossStory.length): (step, "from time \(first) in a row")
      case (let first, let last): (step, "times \(first) to \(last) in a row")
      }
    }
  }
}

extension CodeReading {
  /// The code as a transport reports it.
  fileprivate var evidence: Evidence {
    guard let number else { return .endOfFile }
    return switch source {
    case .hci: .hci(HCIErrorCode(rawValue: number))
    case .encryption: .encryption(HCIErrorCode(rawValue: number))
    case .mgmt: .management(number)
    case .pairing: .pairing(number)
    case .att: .att(ATTErrorCode(rawValue: number))
    case .connect: .system(Int32(number), call: .connect)
    case .socket: .system(Int32(number), call: .receive)
    }
  }
}

extension DisconnectReason {
  /// The moments at which it comes up.
  fileprivate var usualMoments: [LinkMoment] {
    switch self {
    case .notFound, .busy, .channelInUse, .outOfSlots, .adapterStuck, .phantomLink, .wrongAddressType,
      .refused:
      [.dialling]
    case .bondMissing, .pairingFailed, .securityTimeout, .setupFailed, .preparationTimeout:
      [.preparing]
    case .operationExpired:
      [.ready]
    case .requested, .failedToEstablish, .supervisionTimeout, .remoteUserTerminated, .remoteLowResources,
      .remotePowerOff, .localHostTerminated, .linkLayerFault, .authenticationFailure, .keyMissing,
      .micFailure,
      .connectionParameters, .adapterOff, .adapterBlocked, .daemonStopped, .suspended, .adapterMissing,
      .notPermitted, .transactionTimeout, .protocolViolation, .unknown:
      LinkMoment.allCases
    }
  }

  /// What it means, in a line.
  var meaning: String {
    switch self {
    case .requested: "The app asked for it, or its caller was cancelled."
    case .notFound: "The device was not heard."
    case .failedToEstablish: "The device was heard and then answered nothing."
    case .supervisionTimeout: "Nothing was received for the supervision timeout: range, power or noise."
    case .remoteUserTerminated: "The device, or its user, ended the link."
    case .remoteLowResources: "The device ended the link for want of resources."
    case .remotePowerOff: "The device is about to power off."
    case .localHostTerminated: "This host ended the link, and the session did not ask for it."
    case .linkLayerFault: "Timing, a feature or a parameter of the link went wrong."
    case .authenticationFailure: "The keys of the two sides do not fit, or the device wants a bond."
    case .keyMissing: "The device has no key for this host."
    case .micFailure: "A packet failed its integrity check: other keys, or noise."
    case .connectionParameters: "The sides did not agree on the parameters of the connection."
    case .bondMissing: "No bond with the device is known here, and the policy does not pair."
    case .pairingFailed: "Pairing was refused or failed."
    case .securityTimeout: "The link was not secured within the policy's limit."
    case .adapterOff: "The adapter is switched off."
    case .adapterBlocked: "The adapter is blocked by a switch of this machine (rfkill)."
    case .daemonStopped: "bluetoothd stopped and left the adapter off."
    case .suspended: "The host was suspended."
    case .adapterMissing: "The adapter is not there."
    case .notPermitted: "The system does not permit what was tried."
    case .busy: "The radio is busy with another connection."
    case .channelInUse: "Another program or socket holds the device's ATT channel."
    case .outOfSlots: "The adapter has no room for one more link."
    case .adapterStuck: "The adapter refuses every dial: switch it off and on."
    case .phantomLink: "The host lists a link that its controller does not have, or that answers nothing."
    case .wrongAddressType: "The device is there under the other type of its address."
    case .transactionTimeout: "A request was not answered within 30 s."
    case .protocolViolation: "The device sent what the protocol does not allow, or refused what it must not."
    case .setupFailed: "The app's setup failed or did not end in time."
    case .preparationTimeout: "The link did not become ready in time."
    case .refused: "The device, or the way to it, refused the connection."
    case .operationExpired: "The deadline of an operation passed that was to drop the link then."
    case .unknown: "No source told more; the codes are in the evidence."
    }
  }
}

extension LossStory.Course {
  /// What the session does, in words.
  var words: String {
    switch self {
    case .dialsAgain(usesAttempt: true): "dials again"
    case .dialsAgain(usesAttempt: false): "dials again, and uses up no attempt"
    case .staysAway: "stays away until it is asked again"
    case .waits(let reason): "waits \(reason.words)"
    }
  }
}

extension WaitReason {
  /// What ends the wait, in words.
  fileprivate var words: String {
    switch self {
    case .backoff: "for a delay"
    case .adapterOff: "until the adapter is on"
    case .adapterBlocked: "until the adapter is blocked no longer"
    case .suspended: "until the host is awake"
    case .adapterMissing: "until the adapter is there"
    case .notPermitted: "until the system permits it"
    case .previousLink: "until the link before is gone"
    case .userAction(.retryPairing): "for the user: connect() or pairingWasRemoved()"
    case .userAction: "for the user: pairingWasRemoved()"
    }
  }
}
