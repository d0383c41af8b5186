internal import BluetoothWire
internal import Relink

/// The decisions of a GATT server (Core Specification Vol 3 Part F and G): inputs in, effects out, no I/O.
///
/// State is kept where the specification keeps it: the Client Characteristic Configuration per client (forgotten with
/// the link unless the client is bonded), the prepare queue and the order of requests per bearer of a link, the
/// ATT_MTU and the outstanding indication per link.
struct GATTServer {
  enum Effect {
    case respond(any ServedLink, bearer: Int, [UInt8])
    case push(any ServedLink, [UInt8])
    case terminate(any ServedLink, HCIErrorCode)
    case later(any ServedLink, Duration, Deferred)
    case applied(AppliedWrite)
  }

  /// What is left of a request that is answered or applied late.
  enum Deferred {
    case answer(bearer: Int, [[UInt8]], HCIErrorCode?)
    case serve(bearer: Int, ATTPDU, ServerReaction, LinkState)
  }

  /// The error that a request is answered with.
  struct Fault: Error {
    var handle: UInt16
    var code: ATTErrorCode
  }

  struct Prepared {
    var handle: UInt16
    var offset: Int
    var value: [UInt8]
  }

  struct Bearer {
    var prepared: [Prepared] = []
    /// Whether a request is waiting for its answer.
    var isBusy = false
  }

  struct LinkState {
    var link: any ServedLink
    var mtu = ATTLimits.defaultMTU
    var hasExchangedMTU = false
    var security: VirtualSecurity = .none
    var isTerminated = false
    var configurations: [CharacteristicKey: UInt16] = [:]
    var bearers: [Int: Bearer] = [:]
    /// Indications that wait for the confirmation of the one before them.
    var indications: [(handle: UInt16, value: [UInt8])] = []
    var isAwaitingConfirmation = false
  }

  /// What is kept of a bonded client between its links.
  struct Bond {
    var configurations: [CharacteristicKey: UInt16] = [:]
    /// Whether the table changed since the client was last told.
    var isTableStale = false
    /// Whether links count as encrypted from their start, without anybody asking for it.
    var encryptsFromStart = true
  }

  struct Rule {
    var pattern: RequestPattern
    var reaction: ServerReaction
    /// How often it still applies; nil for ever.
    var times: Int?
  }

  struct DescriptorKey: Hashable {
    var key: CharacteristicKey
    var index: Int
  }

  var services: [PlacedService] = []
  var table: ServerTable
  var values: [CharacteristicKey: [UInt8]] = [:]
  var descriptorValues: [DescriptorKey: [UInt8]] = [:]
  var links: [ObjectIdentifier: LinkState] = [:]
  var bonds: [String: Bond] = [:]
  var rules: [Rule] = []
  var counters = PeripheralCounters()
  /// The server's receive MTU.
  var mtuLimit: Int
  /// How many parts a prepare queue holds.
  var prepareLimit: Int
  var nextKey = 0

  init(_ services: [VirtualService], mtuLimit: Int, prepareLimit: Int) {
    self.mtuLimit = mtuLimit
    self.prepareLimit = prepareLimit
    table = ServerTable([])
    self.services = services.map { adopt($0) }
    table = ServerTable(self.services)
  }

  /// Gives the characteristics of a service their names and first values.
  mutating func adopt(_ service: VirtualService) -> PlacedService {
    var keys: [CharacteristicKey] = []
    for declared in service.characteristics {
      let key = CharacteristicKey(number: nextKey)
      nextKey += 1
      values[key] = declared.value
      for (index, descriptor) in declared.descriptors.enumerated() {
        descriptorValues[DescriptorKey(key: key, index: index)] = descriptor.value
      }
      keys.append(key)
    }
    return PlacedService(service: service, keys: keys)
  }

  // MARK: Links

  mutating func opened(_ link: any ServedLink, mtu: Int) -> [Effect] {
    counters.links += 1
    var state = LinkState(link: link, mtu: mtu)
    guard let bond = bonds[link.client], bond.encryptsFromStart else {
      links[ObjectIdentifier(link)] = state
      return []
    }
    state.security = .authenticated
    state.configurations = bond.configurations
    links[ObjectIdentifier(link)] = state
    guard bond.isTableStale else { return [] }
    return announceTable(on: ObjectIdentifier(link))
  }

  /// The keys of a bond encrypt a link: what was kept for the client counts on it from now on.
  mutating func encrypted(_ link: any ServedLink, to level: VirtualSecurity) -> [Effect] {
    let id = ObjectIdentifier(link)
    guard links[id] != nil else { return [] }
    counters.encryptions += 1
    links[id]?.security = level
    guard let bond = bonds[link.client] else { return [] }
    // What the client asked for on this link already stays.
    links[id]?.configurations.merge(bond.configurations) { present, _ in present }
    bonds[link.client]?.configurations = links[id]?.configurations ?? [:]
    return bond.isTableStale ? announceTable(on: id) : []
  }

  mutating func bondMade(with client: String) {
    if bonds[client] == nil { bonds[client] = Bond(encryptsFromStart: false) }
  }

  mutating func closed(_ link: any ServedLink) {
    links[ObjectIdentifier(link)] = nil
  }

  // MARK: Requests

  mutating func received(_ octets: [UInt8], on link: any ServedLink, bearer: Int) -> [Effect] {
    let id = ObjectIdentifier(link)
    guard var state = links[id], !state.isTerminated else { return [] }
    guard let opcode = ATTPDU.opcode(of: octets) else {
      counters.violations[.malformedPDU, default: 0] += 1
      return []
    }
    counters.received[opcode, default: 0] += 1
    if opcode.kind == .request {
      if state.bearers[bearer, default: Bearer()].isBusy {
        counters.violations[.overlappingRequest, default: 0] += 1
      }
      state.bearers[bearer, default: Bearer()].isBusy = true
      links[id] = state
    }
    let pdu: ATTPDU
    do throws(ATTDecodingError) {
      guard octets.count <= state.mtu else {
        counters.violations[.oversizedPDU, default: 0] += 1
        throw ATTDecodingError(opcode: opcode, problem: .badLength)
      }
      pdu = try ATTPDU(decoding: octets)
    } catch {
      counters.violations[.malformedPDU, default: 0] += 1
      guard let answer = error.answer else { return [] }
      return finish(link, bearer, [answer.encoded()], nil)
    }
    switch opcode.kind {
    case .request, .command:
      guard opcode.isKnown else { return [] }
      let reaction = takeReaction(to: pdu, on: state, bearer: bearer)
      return serve(pdu, on: state, bearer: bearer, reaction)
    case .confirmation: return confirmed(id)
    case .response, .notification, .indication:
      counters.violations[.unexpectedPDU, default: 0] += 1
      return []
    case .unknown:
      counters.violations[.unexpectedPDU, default: 0] += 1
      let answer = ATTPDU.errorResponse(request: opcode, handle: 0, code: .requestNotSupported)
      return [.respond(link, bearer: bearer, answer.encoded())]
    }
  }

  /// Goes on with a request whose delay is over.
  mutating func resumed(_ deferred: Deferred, on link: any ServedLink) -> [Effect] {
    switch deferred {
    case .answer(let bearer, let answers, let termination): finish(link, bearer, answers, termination)
    case .serve(let bearer, let pdu, let reaction, let state):
      serve(pdu, on: links[ObjectIdentifier(link)] ?? state, bearer: bearer, reaction)
    }
  }

  private mutating func serve(
    _ pdu: ATTPDU, on initial: LinkState, bearer: Int, _ reaction: ServerReaction
  ) -> [Effect] {
    let link = initial.link
    let id = ObjectIdentifier(link)
    var effects: [Effect] = []
    if let handle = valueHandle(concernedBy: pdu) {
      for value in reaction.notifiesFirst { effects += push(handle, value, on: id, isIndication: false) }
    }
    if reaction.applicationDelay > .zero {
      var rest = reaction
      rest.applicationDelay = .zero
      rest.notifiesFirst = []
      let deferred = Deferred.serve(bearer: bearer, pdu, rest, links[id] ?? initial)
      return effects + [.later(link, reaction.applicationDelay, deferred)]
    }
    // A request that is applied when its link is gone finds the state in which it arrived.
    let isOpen = links[id] != nil
    var state = links[id] ?? initial
    var applied: [Effect] = []
    var proper: [UInt8] = []
    // What is swallowed leaves no trace, not even in a prepare queue.
    if reaction.applies || reaction.answer != .nothing {
      do throws(Fault) {
        proper = try perform(pdu, on: &state, bearer: bearer, applies: reaction.applies, &applied)
      } catch {
        if error.code.isAboutSecurity { counters.securityRefusals += 1 }
        proper = ATTPDU.errorResponse(request: pdu.opcode, handle: error.handle, code: error.code).encoded()
      }
    }
    if isOpen { links[id] = state }

    var answers: [[UInt8]] = []
    if pdu.opcode.kind == .request {
      switch reaction.answer {
      case .proper: answers = [proper]
      case .error(let code):
        let handle = concernedHandle(pdu) ?? 0
        answers = [ATTPDU.errorResponse(request: pdu.opcode, handle: handle, code: code).encoded()]
      case .nothing: answers = []
      case .twice: answers = [proper, proper]
      case .octets(let octets): answers = [octets]
      }
    }
    if reaction.answerDelay > .zero {
      let rest = Deferred.answer(bearer: bearer, answers, reaction.termination)
      effects.append(.later(link, reaction.answerDelay, rest))
    } else {
      effects += finish(link, bearer, answers, reaction.termination)
    }
    return effects + applied
  }

  /// Answers, and ends the link behind that if it is to end.
  private mutating func finish(
    _ link: any ServedLink, _ bearer: Int, _ answers: [[UInt8]], _ termination: HCIErrorCode?
  ) -> [Effect] {
    let id = ObjectIdentifier(link)
    guard links[id]?.isTerminated == false else { return [] }
    var effects: [Effect] = answers.map { .respond(link, bearer: bearer, $0) }
    if !answers.isEmpty {
      // A bearer that holds nothing needs no place: a platform may use a new one for each request.
      let isIdle = links[id]?.bearers[bearer]?.prepared.isEmpty ?? true
      if isIdle { links[id]?.bearers[bearer] = nil } else { links[id]?.bearers[bearer]?.isBusy = false }
    }
    if let termination {
      links[id]?.isTerminated = true
      effects.append(.terminate(link, termination))
    }
    return effects
  }

  /// Finds the first rule that matches, and counts it down.
  private mutating func takeReaction(to pdu: ATTPDU, on state: LinkState, bearer: Int) -> ServerReaction {
    let queued = state.bearers[bearer]?.prepared.map(\.handle) ?? []
    guard let index = rules.firstIndex(where: { matches($0.pattern, pdu, queued: queued) }) else {
      return .proper
    }
    let reaction = rules[index].reaction
    if let times = rules[index].times {
      rules[index].times = times - 1
      if times <= 1 { rules.remove(at: index) }
    }
    return reaction
  }

  private func matches(_ pattern: RequestPattern, _ pdu: ATTPDU, queued: [UInt16]) -> Bool {
    if let opcodes = pattern.opcodes, !opcodes.contains(pdu.opcode) { return false }
    let wanted: UInt16?
    switch pattern.target {
    case .any: return true
    case .handle(let handle): wanted = handle
    case .value(let name): wanted = table.key(of: name).flatMap { table.entries[$0]?.valueHandle }
    case .configuration(let name):
      wanted = table.key(of: name).flatMap { table.entries[$0]?.configurationHandle }
    }
    guard let wanted else { return false }
    if case .executeWriteRequest = pdu { return queued.contains(wanted) }
    return concernedHandle(pdu) == wanted
  }

  /// The handle that a request names.
  private func concernedHandle(_ pdu: ATTPDU) -> UInt16? {
    switch pdu {
    case .readRequest(let handle), .readBlobRequest(let handle, _), .writeRequest(let handle, _),
      .writeCommand(let handle, _), .prepareWriteRequest(let handle, _, _):
      handle
    default: nil
    }
  }

  /// The value that a request is about: the one it names, or the one whose descriptor it names.
  private func valueHandle(concernedBy pdu: ATTPDU) -> UInt16? {
    guard let handle = concernedHandle(pdu), let key = table.key(at: handle) else { return nil }
    return table.entries[key]?.valueHandle
  }

  /// Carries a request out; the octets are the answer, empty for a command.
  private mutating func perform(
    _ pdu: ATTPDU, on state: inout LinkState, bearer: Int, applies: Bool, _ effects: inout [Effect]
  ) throws(Fault) -> [UInt8] {
    switch pdu {
    case .exchangeMTURequest(let mtu): exchangeMTU(Int(mtu), on: &state, applies: applies)
    case .findInformationRequest(let start, let end): try findInformation(start, end, state)
    case .findByTypeValueRequest(let start, let end, let type, let value):
      try findByTypeValue(start, end, type, value, state)
    case .readByTypeRequest(let start, let end, let type): try readByType(start, end, type, state)
    case .readByGroupTypeRequest(let start, let end, let type): try readByGroupType(start, end, type, state)
    case .readRequest(let handle): try read(handle, state)
    case .readBlobRequest(let handle, let offset): try readBlob(handle, Int(offset), state)
    case .readMultipleRequest(let handles): try readMultiple(handles, state)
    case .readMultipleVariableRequest(let handles): try readMultipleVariable(handles, state)
    case .writeRequest(let handle, let value):
      try write(handle, value, .request, on: &state, applies: applies, &effects)
    case .writeCommand(let handle, let value):
      try write(handle, value, .command, on: &state, applies: applies, &effects)
    case .prepareWriteRequest(let handle, let offset, let value):
      try prepare(handle, Int(offset), value, on: &state, bearer: bearer)
    case .executeWriteRequest(let commit):
      try execute(commit, on: &state, bearer: bearer, applies: applies, &effects)
    // A signature cannot be checked without a key, so such a write changes nothing.
    default: []
    }
  }

  /// What a client is told whose link falls short of what a value asks for (Core Specification Vol 3 Part C 10.3.1); nil
  /// where it does not.
  func shortfall(of state: LinkState, for needed: VirtualSecurity) -> ATTErrorCode? {
    guard state.security < needed else { return nil }
    // Without encryption it matters whether there is a key that could encrypt the link.
    if state.security == .none {
      return bonds[state.link.client] == nil ? .insufficientAuthentication : .insufficientEncryption
    }
    return state.security == .authenticated ? .insufficientAuthorization : .insufficientAuthentication
  }

  private mutating func exchangeMTU(_ client: Int, on state: inout LinkState, applies: Bool) -> [UInt8] {
    let own = min(max(mtuLimit, ATTLimits.defaultMTU), state.link.mtuLimit)
    if state.hasExchangedMTU { counters.violations[.repeatedMTUExchange, default: 0] += 1 }
    if applies {
      state.mtu = max(min(client, own), ATTLimits.defaultMTU)
      state.hasExchangedMTU = true
    }
    return ATTPDU.exchangeMTUResponse(mtu: UInt16(clamping: own)).encoded()
  }
}

extension ATTErrorCode {
  /// Whether it says that the link is not secured enough.
  fileprivate var isAboutSecurity: Bool {
    self == .insufficientEncryption || self == .insufficientAuthentication
  }
}
