internal import BluetoothWire
internal import RelinkCore

extension ATTLink {
  func received(_ bytes: borrowing RawSpan) {
    let action = read(bytes)
    flush()
    switch action {
    case .none:
      break
    case .answered(let pdu, _):
      advance(with: pdu)
    case .notified(let handle, let value):
      deliver(value, from: handle)
    case .notifiedSeveral(let values):
      for item in values { deliver(item.value, from: item.handle) }
    case .indicated(let handle, let value):
      if reply(.handleValueConfirmation) { deliver(value, from: handle) }
    case .reply(let pdu):
      _ = reply(pdu)
    case .malformedAnswer:
      leave()
      finish(.failure(.malformedAnswer))
    case .end:
      leave()
    }
    announceWritable()
  }

  private func read(_ bytes: borrowing RawSpan) -> BearerStateMachine.ReceivedAction {
    guard bytes.byteCount <= bearer.mtu else {
      return bearer.receivedMalformed(ATTDecodingError(opcode: ATTPDU.opcode(of: bytes), problem: .badLength))
    }
    do throws(ATTDecodingError) {
      return bearer.received(try ATTPDU(decoding: bytes))
    } catch {
      return bearer.receivedMalformed(error)
    }
  }

  // MARK: Answers

  private func advance(with pdu: ATTPDU) {
    guard let action = current?.procedure.received(pdu, mtu: bearer.mtu) else { return }
    switch action {
    case .request(let next):
      sendNext(next)
    case .finished(let result):
      if case .success(.mtu(let mtu)) = result { bearer.mtu = mtu }
      finish(result)
      if case .failure(.rejected(.databaseOutOfSync)) = result { tableChanged(1...UInt16.max) }
    case .table(let table):
      learnt(table)
    case .failed(let failure, let violation):
      fail(failure, violation)
    }
  }

  func finish(_ result: Result<GATTAnswer, GATTFailure>) {
    guard let request = current?.id else { return }
    if securable != nil, setAside(for: result) { return }
    current = nil
    handler?.link(id, answered: request, with: result)
  }

  private func fail(_ failure: GATTFailure, _ violation: BearerViolation) {
    _ = bearer.violated(violation)
    leave()
    finish(.failure(failure))
  }

  // MARK: The table

  /// How often discovery begins again because the table changed under it, before the device is given up.
  private static let restartLimit = 4

  private func learnt(_ learnt: AttributeTable) {
    if isDiscoveryOutdated {
      isDiscoveryOutdated = false
      discoveryRestarts += 1
      guard discoveryRestarts <= Self.restartLimit else { return fail(.malformedAnswer, .tableNeverSettled) }
      let procedure = DiscoveryProcedure(known: tables.table, mayKeepKnown: false)
      current?.procedure = .discovery(procedure)
      return sendNext(procedure.first)
    }
    let isChanged = tables.table.map { !$0.hasSameAttributes(as: learnt) } ?? false
    tables.store(learnt)
    table = learnt
    staleHandles = nil
    finish(.success(.table(learnt.discovered, changed: isChanged)))
  }

  private func tableChanged(_ handles: ClosedRange<UInt16>) {
    if case .discovery = current?.procedure { isDiscoveryOutdated = true }
    // Nothing that was looked up before may take effect on what its handle means now.
    callOffQueuedWrite()
    guard table != nil else { return }
    let known = staleHandles ?? handles
    staleHandles = min(known.lowerBound, handles.lowerBound)...max(known.upperBound, handles.upperBound)
    handler?.linkTableChanged(id)
  }

  // MARK: Values

  private func deliver(_ value: [UInt8], from handle: UInt16) {
    // Several values may come in one PDU, and the handler may close the link between them.
    guard bearer.end == nil else { return }
    // Service Changed keeps its handle while a bond lasts (Vol 3 Part G 7.1), so that of the link before will do.
    guard let entry = (table ?? tables.table)?.entry(ofValue: handle) else { return valueDropped() }
    if entry.name.uuid == .serviceChanged { return tableChanged(affectedHandles(value)) }
    guard table != nil, staleHandles?.contains(handle) != true, !isRefused(handle) else {
      return valueDropped()
    }
    handler?.link(id, value: value, of: entry.name, receivedAt: now())
  }

  /// The range in a Service Changed value (Vol 3 Part G 7.1); all handles where it makes no sense.
  private func affectedHandles(_ value: [UInt8]) -> ClosedRange<UInt16> {
    guard value.count == 4 else { return 1...UInt16.max }
    let start = UInt16(value[0]) | UInt16(value[1]) << 8
    let end = UInt16(value[2]) | UInt16(value[3]) << 8
    return start <= end ? start...end : 1...UInt16.max
  }
}

extension AttributeTable.Entry {
  /// What to write into the Client Characteristic Configuration descriptor (Vol 3 Part G 3.3.3.3).
  ///
  /// Notifications where they are allowed, else indications; nil where neither is.
  func configurationValue(_ isOn: Bool) -> UInt8? {
    guard properties.contains(.notify) || properties.contains(.indicate) else { return nil }
    guard isOn else { return 0 }
    return properties.contains(.notify) ? 1 : 2
  }
}
