internal import Relink

/// What the checks of securable links have in common.
final class SecurityBench: Sendable {
  let environment: any SecurityContractEnvironment
  let links: ContractBench

  /// How a try to secure a link ended.
  enum Ending: Hashable, Sendable {
    case secured(SecurityLevel)
    case notSecured(LinkLoss)
  }

  init(_ environment: any SecurityContractEnvironment) {
    self.environment = environment
    links = ContractBench(environment)
  }

  var name: Characteristic { environment.keys.protectedCharacteristic }

  // MARK: - Keys

  func setBond(atDevice: Bool, here: Bool) async throws {
    guard await environment.keys.setBond(atDevice: atDevice, here: here) else {
      throw ContractEnd.skipped("the bond cannot be made so")
    }
  }

  func setPairing(_ agrees: Bool) async throws {
    guard await environment.keys.setPairing(agrees) else {
      throw ContractEnd.skipped("the device cannot be told how to pair")
    }
  }

  func pairingRequests() async -> Int { await environment.keys.pairingRequests() ?? 0 }

  /// What the transport says of the bond; nil where it knows no bonds.
  func bond() async -> BondKnowledge? {
    guard let transport = environment.transport as? any BondingTransport else { return nil }
    let device = environment.device
    return await links.driver.perform { transport.bond(with: device) }
  }

  // MARK: - Links

  /// A link whose first requests were answered.
  func connect() async throws -> any SecurableLink {
    guard let link = try await links.connect() as? any SecurableLink else {
      throw ContractEnd.skipped("links of this transport are not secured from here")
    }
    return link
  }

  func secure(_ link: any SecurableLink, _ keys: SecurityPolicy.KeySource) async {
    await links.driver.perform { [recorder = links.recorder] in
      recorder.calling { link.secure(to: .encrypted, keys: keys) }
    }
  }

  /// How tries to secure a link ended, in order.
  func endings(_ link: any Link) -> [Ending] {
    links.recorder.deliveries(of: link.id).compactMap {
      switch $0 {
      case .secured(_, let level): .secured(level)
      case .notSecured(_, let loss): .notSecured(loss)
      default: nil
      }
    }
  }

  private func ending(_ link: any Link) async throws -> Ending {
    let came = await links.driver.wait { !self.endings(link).isEmpty }
    guard came, let ending = endings(link).first else {
      throw ContractEnd.failed("a try to secure a link did not end")
    }
    return ending
  }

  func secured(_ link: any Link) async throws -> SecurityLevel {
    switch try await ending(link) {
    case .secured(let level): return level
    case .notSecured(let loss): throw ContractEnd.failed("a link was not secured: \(loss)")
    }
  }

  func notSecured(_ link: any Link) async throws -> LinkLoss {
    switch try await ending(link) {
    case .secured(let level): throw ContractEnd.failed("a link was secured to \(level)")
    case .notSecured(let loss): return loss
    }
  }

  /// Waits until a link is not secured: it is said so, or the link ends.
  func failed(_ link: any Link) async throws -> LinkLoss {
    _ = await links.driver.wait {
      !self.endings(link).isEmpty || !self.links.recorder.closings(of: link.id).isEmpty
    }
    if let closing = links.recorder.closings(of: link.id).first, endings(link).isEmpty { return closing.loss }
    return try await notSecured(link)
  }

  /// Answers the question of a pairing, if there is one: some hosts agree by themselves to what just works.
  func answerQuestion(_ answer: PairingAnswer, on link: any Link) async throws {
    _ = await links.driver.wait {
      self.links.recorder.deliveries(of: link.id).contains { if case .asks = $0 { true } else { false } }
        || !self.endings(link).isEmpty || !self.links.recorder.closings(of: link.id).isEmpty
    }
    await links.driver.perform { [recorder = links.recorder] in
      _ = recorder.calling { recorder.answer(answer) }
    }
  }

  /// Makes a request that the device refuses for want of security, and that the link keeps.
  func keep(_ request: GATTRequest, on link: any SecurableLink) async throws -> RequestID {
    let id = try await links.accepted(request, on: link)
    let came = await links.driver.wait { [recorder = links.recorder] in
      recorder.deliveries(of: link.id).contains { if case .needs = $0 { true } else { false } }
    }
    try require(came, "nobody was told that the device wants more security")
    await links.driver.settle()
    try require(links.recorder.answers(to: id, on: link.id).isEmpty, "a request that is kept was answered")
    return id
  }

  /// The answers to a request, once one has come and nothing follows.
  func answers(to id: RequestID, on link: any Link) async -> [Result<GATTAnswer, GATTFailure>] {
    _ = await links.driver.wait { [recorder = links.recorder] in
      !recorder.answers(to: id, on: link.id).isEmpty
    }
    await links.driver.settle()
    return links.recorder.answers(to: id, on: link.id)
  }

  /// The link goes on as before.
  func works(_ link: any Link) async throws {
    let answer = try await links.answer(.read(links.name), on: link)
    guard case .success(.value) = answer else {
      throw ContractEnd.failed("the next read was answered with \(answer)")
    }
  }
}
