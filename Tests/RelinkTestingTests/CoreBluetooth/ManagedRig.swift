import BluetoothWire
import Relink
import RelinkTesting

/// A managed radio with one device and a recorder in the place of a session.
final class ManagedRig {
  let executor = ManualExecutor()
  let radio: ManagedRadio
  let peripheral: VirtualPeripheral
  let recorder = LinkRecorder()
  let device: DeviceID
  private var nextRequest: UInt64 = 1
  private var nextAttempt: UInt64 = 1

  init(
    _ peripheral: VirtualPeripheral = .twoValues(value: [0x41]),
    configuration: ManagedConfiguration = ManagedConfiguration()
  ) throws {
    self.peripheral = peripheral
    radio = ManagedRadio(on: executor, configuration: configuration)
    guard let device = DeviceID("7E8B0C9D") else { throw RelinkError(.invalidArgument, "no device") }
    self.device = device
    radio.add(peripheral, as: device)
    try radio.register(recorder, for: device)
  }

  @discardableResult
  func dial(limit: Duration? = nil) -> (AttemptID, any Attempt) {
    let id = AttemptID(rawValue: nextAttempt)
    nextAttempt += 1
    return (id, recorder.calling { radio.dial(device, attempt: id, options: DialOptions(limit: limit)) })
  }

  /// Dials, waits for the link and lets it discover.
  func connect() throws -> any Link {
    dial()
    executor.run(until: { recorder.link != nil }, within: .seconds(60))
    guard let link = recorder.link else { throw RelinkError(.linkLost, "no link came up") }
    perform(.discover, on: link)
    executor.advance(by: .seconds(1))
    return link
  }

  @discardableResult
  func perform(_ request: GATTRequest, on link: any Link) -> (RequestID, LinkAcceptance) {
    let id = RequestID(rawValue: nextRequest)
    nextRequest += 1
    return (id, recorder.calling { link.perform(request, id: id) })
  }

  /// Makes a request and waits for its answer.
  func answer(_ request: GATTRequest, on link: any Link) -> Result<GATTAnswer, GATTFailure>? {
    let (id, _) = perform(request, on: link)
    executor.run(until: { !recorder.answers(to: id, on: link.id).isEmpty }, within: .seconds(60))
    return recorder.answers(to: id, on: link.id).first
  }
}

let firstValue = Characteristic(.first)
let secondValue = Characteristic(.second)
