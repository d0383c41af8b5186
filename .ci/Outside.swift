import Relink
import RelinkTesting

// What a user's test looks like, with the public interface and these two imports alone: the answer to a command is lost
// together with the link. The caller is told that it is in doubt, the session comes back, and the bolt moved once.

struct Failure: Error {
  let reason: String
}

let executor = ManualExecutor()
let radio = VirtualRadio(on: executor)
let lock = VirtualPeripheral.lock()
let device = DeviceID(address: BluetoothAddress(0xF0F0_F0F0_F002), type: .random)
radio.add(lock, as: device)

var faults = radio.faults
faults.strike(.loseLinkBefore(.connectionTimeout), of: .answer, opcode: ATTOpcode.writeResponse.rawValue)
radio.setFaults(faults)

let session = try DeviceSession(with: device, over: radio)
let history = EventRecorder()
executor.spawn { await history.record(from: session.events()) }

let movements = try executor.drive {
  do {
    try await session.write([1], to: Characteristic(.lockCommand), idempotency: .nonIdempotent)
    throw Failure(reason: "a write without an answer succeeded")
  } catch let error as RelinkError {
    guard case .indeterminate = error.outcome else { throw Failure(reason: "not in doubt: \(error)") }
  }
  let movements = try await session.read(Characteristic(.lockMovements))
  await session.close()
  return movements
}
executor.run()

guard movements == [1, 0, 0, 0], lock.counters.applied.count == 1 else {
  throw Failure(reason: "the bolt moved \(movements)")
}
if let violation = history.violationOfComplete { throw Failure(reason: "\(violation)") }
print(history.outline)
