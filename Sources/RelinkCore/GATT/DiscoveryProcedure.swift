package import BluetoothWire

/// Learns the attribute table of a device, or proves that a known one still holds.
///
/// ```
///   hash ──(equal to that of the known table)──▶ the known table
///     │
///     └──▶ services ──▶ characteristics ──▶ descriptors ──▶ a new table
/// ```
///
/// - *hash*: one Read By Type of the Database Hash (Core Specification Vol 3 Part G 7.3). Left out where the known
///   table has none. It is read before anything else, so that a table that changes meanwhile does not match later.
/// - *services*: Read By Group Type of primary services over all handles (4.4.1).
/// - *characteristics*: Read By Type of declarations over all services at once (4.6.1), which takes fewer requests than
///   one range per service. Declarations outside primary services are passed over; so are included services.
/// - *descriptors*: Find Information from each gap between a value and the next declaration up to the end of the last
///   gap (4.7.1): one answer often covers several gaps.
///
/// Each answer must bring handles that ascend inside the range that was asked for, so the number of requests is bounded
/// by the number of attributes, and that by ``attributeLimit``. Anything else is a violation.
package struct DiscoveryProcedure: Sendable {
  /// The largest table that is learnt; ten times what large devices have.
  package static let attributeLimit = 4096

  private enum Stage {
    case hash
    case services
    case characteristics
    case descriptors
  }

  /// The handles after a value and before the next declaration, where descriptors are.
  private struct Gap {
    var characteristic: Int
    var start: UInt16
    var end: UInt16
  }

  private let known: AttributeTable?
  private var stage: Stage
  /// The range of the outstanding request.
  private var start: UInt16 = 1
  private var end: UInt16 = .max
  private var hash: [UInt8]?
  private var services: [AttributeTable.Service] = []
  private var characteristics: [AttributeTable.Found] = []
  private var gaps: [Gap] = []
  private var gap = 0
  private var descriptorCount = 0

  /// - Parameters:
  ///   - known: The table of the link before.
  ///   - mayKeepKnown: Whether an equal hash is enough to keep it; false once the device said that it changed.
  package init(known: AttributeTable?, mayKeepKnown: Bool = true) {
    self.known = mayKeepKnown && known?.databaseHash != nil ? known : nil
    stage = known?.hasDatabaseHash == false ? .services : .hash
  }

  /// The request to begin with.
  package var first: ATTPDU { request }

  package mutating func received(_ pdu: ATTPDU) -> ProcedureAction {
    switch (stage, pdu) {
    case (.hash, .readByTypeResponse(let values)):
      return hashReceived(values)
    case (.hash, .errorResponse):
      // Whatever the reason, there is no hash to rely on.
      return enter(.services)
    case (.services, .readByGroupTypeResponse(let groups)):
      return servicesReceived(groups)
    case (.characteristics, .readByTypeResponse(let values)):
      return characteristicsReceived(values)
    case (.descriptors, .findInformationResponse(let items)):
      return descriptorsReceived(items)
    case (.services, .errorResponse(_, _, .attributeNotFound)):
      return services.isEmpty ? finish() : enter(.characteristics)
    case (.characteristics, .errorResponse(_, _, .attributeNotFound)):
      return enter(.descriptors)
    case (.descriptors, .errorResponse(_, _, .attributeNotFound)):
      return finish()
    case (_, .errorResponse(_, _, let code)):
      return .finished(.failure(.rejected(code)))
    case (.hash, _), (.services, _), (.characteristics, _), (.descriptors, _):
      return .malformed(pdu)
    }
  }

  private var request: ATTPDU {
    switch stage {
    case .hash: .readByTypeRequest(start: start, end: end, type: .databaseHash)
    case .services: .readByGroupTypeRequest(start: start, end: end, type: .primaryService)
    case .characteristics: .readByTypeRequest(start: start, end: end, type: .characteristic)
    case .descriptors: .findInformationRequest(start: start, end: end)
    }
  }

  private mutating func enter(_ next: Stage) -> ProcedureAction {
    stage = next
    switch next {
    case .hash, .services:
      (start, end) = (1, .max)
    case .characteristics:
      guard let first = services.first, let last = services.last else { return finish() }
      (start, end) = (first.start, last.end)
    case .descriptors:
      findGaps()
      guard let first = gaps.first, let last = gaps.last else { return finish() }
      (start, end) = (first.start, last.end)
    }
    return .request(request)
  }

  private func finish() -> ProcedureAction {
    .table(AttributeTable(services: services, characteristics: characteristics, databaseHash: hash))
  }
}

// MARK: - Answers

extension DiscoveryProcedure {
  private static let hashLength = 16

  private mutating func hashReceived(_ values: [ATTHandleValue]) -> ProcedureAction {
    if let value = values.first?.value, value.count == Self.hashLength {
      hash = value
      if let known, known.databaseHash == value { return .table(known) }
    }
    return enter(.services)
  }

  private mutating func servicesReceived(_ groups: [ATTGroupValue]) -> ProcedureAction {
    var least = start
    var reachedEnd = false
    for group in groups {
      guard !reachedEnd, group.start >= least, group.end >= group.start else {
        return outOfOrder(group.start, in: .readByGroupTypeResponse)
      }
      guard let uuid = BluetoothUUID(littleEndian: group.value), group.value.count != 4 else {
        return .failed(.malformedAnswer, .malformedDeclaration(handle: group.start))
      }
      services.append(AttributeTable.Service(uuid: uuid, start: group.start, end: group.end))
      reachedEnd = group.end == .max
      if !reachedEnd { least = group.end + 1 }
    }
    return proceed(after: groups.isEmpty ? nil : (reachedEnd ? .max : least - 1), to: .characteristics)
  }

  private mutating func characteristicsReceived(_ values: [ATTHandleValue]) -> ProcedureAction {
    var previous: UInt16?
    for item in values {
      guard isAscending(item.handle, after: previous) else {
        return outOfOrder(item.handle, in: .readByTypeResponse)
      }
      previous = item.handle
      guard item.value.count == 5 || item.value.count == 19,
        let uuid = BluetoothUUID(littleEndian: item.value.dropFirst(3))
      else { return .failed(.malformedAnswer, .malformedDeclaration(handle: item.handle)) }
      guard let service = service(containing: item.handle) else { continue }
      let value = UInt16(item.value[1]) | UInt16(item.value[2]) << 8
      guard value > item.handle, value <= services[service].end,
        item.handle > characteristics.last?.value ?? 0
      else { return .failed(.malformedAnswer, .malformedDeclaration(handle: item.handle)) }
      characteristics.append(
        AttributeTable.Found(
          service: service, uuid: uuid, properties: CharacteristicProperties(rawValue: item.value[0]),
          declaration: item.handle, value: value))
    }
    return proceed(after: previous, to: .descriptors)
  }

  private mutating func descriptorsReceived(_ items: [ATTHandleUUID]) -> ProcedureAction {
    var previous: UInt16?
    for item in items {
      guard isAscending(item.handle, after: previous) else {
        return outOfOrder(item.handle, in: .findInformationResponse)
      }
      previous = item.handle
      while gap < gaps.count, gaps[gap].end < item.handle { gap += 1 }
      guard gap < gaps.count, gaps[gap].start <= item.handle, !item.uuid.isDeclaration else { continue }
      characteristics[gaps[gap].characteristic].descriptors.append(item)
      descriptorCount += 1
    }
    guard let previous else { return outOfOrder(0, in: .findInformationResponse) }
    guard attributeCount <= Self.attributeLimit else { return tooLarge }
    while gap < gaps.count, gaps[gap].end <= previous { gap += 1 }
    guard gap < gaps.count, previous < end else { return finish() }
    start = max(gaps[gap].start, previous + 1)
    return .request(request)
  }

  /// Asks for what lies behind the last handle that was answered, or goes on to the next stage.
  private mutating func proceed(after last: UInt16?, to next: Stage) -> ProcedureAction {
    guard let last else { return outOfOrder(0, in: request.opcode.responseOpcode ?? .errorResponse) }
    guard attributeCount <= Self.attributeLimit else { return tooLarge }
    guard last < end else { return enter(next) }
    start = last + 1
    return .request(request)
  }

  private func isAscending(_ handle: UInt16, after previous: UInt16?) -> Bool {
    handle >= start && handle <= end && handle > previous ?? 0
  }

  private func outOfOrder(_ handle: UInt16, in opcode: ATTOpcode) -> ProcedureAction {
    .failed(.malformedAnswer, .handleOutOfOrder(handle, in: opcode))
  }

  private var tooLarge: ProcedureAction {
    .failed(.malformedAnswer, .tableTooLarge(limit: Self.attributeLimit))
  }

  private var attributeCount: Int { services.count + characteristics.count + descriptorCount }

  /// The service whose handles span this one; they are in order and apart from each other.
  private func service(containing handle: UInt16) -> Int? {
    var low = 0
    var high = services.count
    while low < high {
      let middle = (low + high) / 2
      if services[middle].end < handle { low = middle + 1 } else { high = middle }
    }
    guard low < services.count, services[low].start < handle else { return nil }
    return low
  }

  private mutating func findGaps() {
    for (index, found) in characteristics.enumerated() {
      let isLast = index + 1 == characteristics.count || characteristics[index + 1].service != found.service
      let boundary = isLast ? services[found.service].end : characteristics[index + 1].declaration - 1
      if found.value < boundary {
        gaps.append(Gap(characteristic: index, start: found.value + 1, end: boundary))
      }
    }
  }
}

extension BluetoothUUID {
  /// Whether an attribute of this type begins a service or a characteristic, and so is no descriptor.
  fileprivate var isDeclaration: Bool {
    guard let short else { return false }
    return 0x2800...0x2803 ~= short
  }
}
