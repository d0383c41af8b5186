import BluetoothWire
import Relink
import RelinkTesting
import Testing

/// A channel that the test is: it says what becomes of each PDU, and plays the device.
final class ScriptedChannel: PDUChannel {
  private struct State {
    weak var handler: (any PDUChannelHandler)?
    var sent: [[UInt8]] = []
    var results: [PDUSendResult] = []
    var result = PDUSendResult.sent
    var closes = 0
    var security = SecurityLevel.none
  }

  private let state = Locked(State())
  let maximumPDULength: Int

  init(maximumPDULength: Int) { self.maximumPDULength = maximumPDULength }

  func open(_ handler: any PDUChannelHandler) { state.withLock { $0.handler = handler } }

  func send(_ pdu: [UInt8]) -> PDUSendResult {
    state.withLock {
      let result = $0.results.isEmpty ? $0.result : $0.results.removeFirst()
      if result == .sent { $0.sent.append(pdu) }
      return result
    }
  }

  func close() { state.withLock { $0.closes += 1 } }

  var handler: (any PDUChannelHandler)? { state.withLock { $0.handler } }
  var closes: Int { state.withLock { $0.closes } }
  var security: SecurityLevel {
    get { state.withLock { $0.security } }
    set { state.withLock { $0.security = newValue } }
  }
  /// What becomes of each PDU from now on.
  func answerSends(with result: PDUSendResult) { state.withLock { $0.result = result } }
  /// What becomes of the next PDUs, before that.
  func answerNextSends(with results: [PDUSendResult]) { state.withLock { $0.results = results } }
  func takeSent() -> [[UInt8]] {
    state.withLock { state in
      defer { state.sent = [] }
      return state.sent
    }
  }
}

/// The same channel, over a link that can be secured.
final class SecurableScript: SecurableChannel {
  private let channel: ScriptedChannel
  private let state = Locked<[SecurityLevel]>([])

  init(_ channel: ScriptedChannel) { self.channel = channel }

  var maximumPDULength: Int { channel.maximumPDULength }
  var security: SecurityLevel { channel.security }
  func open(_ handler: any PDUChannelHandler) { channel.open(handler) }
  func send(_ pdu: [UInt8]) -> PDUSendResult { channel.send(pdu) }
  func close() { channel.close() }
  func secure(to level: SecurityLevel, keys: SecurityPolicy.KeySource) { state.withLock { $0.append(level) } }

  /// What it was asked to secure its link to.
  var asked: [SecurityLevel] { state.withLock { $0 } }
}

/// What a link delivered.
enum Delivery: Equatable {
  case answered(RequestID, Result<GATTAnswer, GATTFailure>)
  case value([UInt8], Characteristic, Timestamp)
  case tableChanged
  case writable
  case closed(LinkLoss, inDoubt: [RequestID])
  case needs(SecurityLevel)
  case secured(SecurityLevel)
  case notSecured(LinkLoss)
  /// Something that an ATT link never says, or that came inside a call.
  case wrong(String)
}

final class DeliveryRecorder: LinkHandler {
  private struct State {
    var deliveries: [Delivery] = []
    var isInsideCall = false
    var reaction: (@Sendable (Delivery) -> Void)?
  }

  private let state = Locked(State())

  func react(_ reaction: @escaping @Sendable (Delivery) -> Void) { state.withLock { $0.reaction = reaction } }

  func take() -> [Delivery] {
    state.withLock { state in
      defer { state.deliveries = [] }
      return state.deliveries
    }
  }

  /// Marks what is delivered inside `call` as wrong.
  func calling<Value>(_ call: () -> Value) -> Value {
    state.withLock { $0.isInsideCall = true }
    defer { state.withLock { $0.isInsideCall = false } }
    return call()
  }

  private func record(_ delivery: Delivery) {
    let reaction = state.withLock { state in
      state.deliveries.append(state.isInsideCall ? .wrong("inside a call: \(delivery)") : delivery)
      return state.reaction
    }
    reaction?(delivery)
  }

  func linkUp(_ link: any Link, attempt: AttemptID?) { record(.wrong("linkUp")) }
  func attemptFailed(_ attempt: AttemptID, _ loss: LinkLoss) { record(.wrong("attemptFailed")) }
  func adapterChanged(_ state: AdapterState) { record(.wrong("adapterChanged")) }
  func link(_ link: LinkID, answered request: RequestID, with answer: Result<GATTAnswer, GATTFailure>) {
    record(.answered(request, answer))
  }
  func link(_ link: LinkID, value: [UInt8], of characteristic: Characteristic, receivedAt: Timestamp) {
    record(.value(value, characteristic, receivedAt))
  }
  func linkTableChanged(_ link: LinkID) { record(.tableChanged) }
  func linkWritable(_ link: LinkID) { record(.writable) }
  func link(_ link: LinkID, needs level: SecurityLevel) { record(.needs(level)) }
  func link(_ link: LinkID, secured level: SecurityLevel) { record(.secured(level)) }
  func link(_ link: LinkID, notSecured loss: LinkLoss) { record(.notSecured(loss)) }
  func link(_ link: LinkID, closed loss: LinkLoss, inDoubt: [RequestID]) {
    record(.closed(loss, inDoubt: inDoubt))
  }
}

/// A link over a scripted channel, on an executor that stands still.
struct ATTBench {
  let executor = ManualExecutor()
  let channel: ScriptedChannel
  let recorder = DeliveryRecorder()
  let tables: AttributeTableMemory
  let link: ATTLink
  /// The channel that can be secured; nil where it cannot.
  let securable: SecurableScript?
  private var last: UInt64 = 0

  init(
    maximumPDULength: Int = 517, tables: AttributeTableMemory = AttributeTableMemory(),
    isSecurable: Bool = false
  ) {
    channel = ScriptedChannel(maximumPDULength: maximumPDULength)
    securable = isSecurable ? SecurableScript(channel) : nil
    self.tables = tables
    link = ATTLink(
      id: LinkID(rawValue: 1), over: securable ?? channel, on: executor, for: recorder, tables: tables)
    link.start()
  }

  /// A link that has learnt the table of a device.
  init(to device: ScriptedDevice, tables: AttributeTableMemory = AttributeTableMemory()) {
    self.init(tables: tables)
    discover(device)
    _ = recorder.take()
  }

  /// Makes a request under the next number.
  mutating func perform(_ request: GATTRequest) -> LinkAcceptance {
    last += 1
    let id = RequestID(rawValue: last)
    return recorder.calling { link.perform(request, id: id) }
  }

  /// The number of the latest request.
  var latest: RequestID { RequestID(rawValue: last) }

  func abandon(_ id: RequestID) { recorder.calling { _ = link.abandon(id) } }
  func close() { recorder.calling { link.close() } }

  /// The device says something, and nothing more for the moment.
  func receive(_ bytes: [UInt8]) {
    arrive(bytes)
    executor.run()
  }
  /// The device says something, and more of it may have arrived.
  func arrive(_ bytes: [UInt8]) { channel.handler?.channelReceived(bytes.span.bytes) }
  func receive(_ pdu: ATTPDU) { receive(pdu.encoded()) }
  func becomeWritable() {
    channel.answerSends(with: .sent)
    channel.handler?.channelWritable()
  }
  func lose(_ loss: LinkLoss = .lost) { channel.handler?.channelClosed(loss) }

  /// Lets a device answer a discovery until it is over; returns how many requests that took.
  @discardableResult
  mutating func discover(_ device: ScriptedDevice) -> Int {
    #expect(perform(.discover) == .accepted)
    return serve(device)
  }

  /// Lets a device answer what was sent, and what is sent then.
  @discardableResult
  func serve(_ device: ScriptedDevice) -> Int {
    var count = 0
    while true {
      let requests = channel.takeSent()
      guard !requests.isEmpty else { return count }
      for request in requests {
        count += 1
        receive(device.answer(request))
      }
    }
  }
}

extension LinkLoss {
  static let lost = LinkLoss(.supervisionTimeout, evidence: [.system(110, call: .receive)])
}

/// A table that answers discovery; each characteristic is a service's last when the next has another service.
struct ScriptedDevice {
  struct Attribute {
    var handle: UInt16
    var type: BluetoothUUID
    var value: [UInt8]
    var groupEnd: UInt16 = 0
  }

  var attributes: [Attribute]

  /// Battery Level at 0x0010 with its CCCD at 0x0011, Heart Rate Measurement (indicated) at 0x0020 and 0x0021,
  /// Body Sensor Location (read only) at 0x0023; Service Changed at 0x0003, and a hash at 0x0006 if there is one.
  static func standard(hash: [UInt8]? = nil, shift: UInt16 = 0) -> ScriptedDevice {
    var device = ScriptedDevice(attributes: [])
    device.service(.genericAttribute, 1...8)
    device.characteristic(.serviceChanged, [.indicate], 2)
    device.attributes.append(Attribute(handle: 4, type: .clientCharacteristicConfiguration, value: []))
    if let hash { device.characteristic(.databaseHash, [.read], 5, hash) }
    if shift > 0 { device.service(.deviceInformation, 9...(8 + shift)) }
    device.service(.battery, (0x0E + shift)...0xFFFF)
    device.characteristic(.batteryLevel, [.read, .write, .writeWithoutResponse, .notify], 0x0F + shift)
    device.attributes.append(
      Attribute(handle: 0x11 + shift, type: .clientCharacteristicConfiguration, value: []))
    device.characteristic(.heartRateMeasurement, [.indicate], 0x1F + shift)
    device.attributes.append(
      Attribute(handle: 0x21 + shift, type: .clientCharacteristicConfiguration, value: []))
    device.characteristic(.bodySensorLocation, [.read], 0x22 + shift)
    return device
  }

  private mutating func service(_ uuid: BluetoothUUID, _ handles: ClosedRange<UInt16>) {
    attributes.append(
      Attribute(
        handle: handles.lowerBound, type: .primaryService, value: uuid.encoded(),
        groupEnd: handles.upperBound))
  }

  private mutating func characteristic(
    _ uuid: BluetoothUUID, _ properties: CharacteristicProperties, _ handle: UInt16, _ value: [UInt8] = []
  ) {
    let valueHandle = handle + 1
    attributes.append(
      Attribute(
        handle: handle, type: .characteristic,
        value: [properties.rawValue, UInt8(valueHandle & 0xFF), UInt8(valueHandle >> 8)] + uuid.encoded()))
    attributes.append(Attribute(handle: valueHandle, type: uuid, value: value))
  }

  func answer(_ bytes: [UInt8]) -> ATTPDU {
    guard let request = try? ATTPDU(decoding: bytes) else {
      return .errorResponse(request: ATTOpcode(rawValue: bytes.first ?? 0), handle: 0, code: .invalidPDU)
    }
    let notFound = ATTPDU.errorResponse(request: request.opcode, handle: 1, code: .attributeNotFound)
    switch request {
    case .readByGroupTypeRequest(let start, let end, let type):
      let found = attributes.first { $0.type == type && start...end ~= $0.handle }
      guard let found else { return notFound }
      return .readByGroupTypeResponse([
        ATTGroupValue(start: found.handle, end: found.groupEnd, value: found.value)
      ])
    case .readByTypeRequest(let start, let end, let type):
      let found = attributes.first { $0.type == type && start...end ~= $0.handle }
      guard let found else { return notFound }
      return .readByTypeResponse([ATTHandleValue(handle: found.handle, value: found.value)])
    case .findInformationRequest(let start, let end):
      let found = attributes.first { start...end ~= $0.handle }
      guard let found else { return notFound }
      return .findInformationResponse([ATTHandleUUID(handle: found.handle, uuid: found.type)])
    case .writeRequest: return .writeResponse
    default: return .errorResponse(request: request.opcode, handle: 0, code: .requestNotSupported)
    }
  }
}

extension Characteristic {
  /// At 0x0010 of the standard device.
  static let level = Characteristic(.batteryLevel, in: .battery)
  /// At 0x0020.
  static let beat = Characteristic(.heartRateMeasurement, in: .battery)
  /// At 0x0023.
  static let location = Characteristic(.bodySensorLocation, in: .battery)
}
