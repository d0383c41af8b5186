import BluetoothWire
import Relink
import RelinkTesting
import Testing

@testable import relink_tool

@Suite("Demo")
struct DemoTests {
  @Test("The day ends in agreement")
  func day() throws {
    let day = try DemoDay(isJSON: true)
    try day.play()
    #expect(day.conclude())
  }

  @Test("A lock that moved although its caller was told that nothing was sent is noticed")
  func disagreement() throws {
    let executor = ManualExecutor()
    let radio = VirtualRadio(on: executor)
    let lock = VirtualPeripheral.lock()
    let device = try #require(DeviceID("C0:DE:00:00:00:01/random"))
    radio.add(lock, as: device)
    let session = try DeviceSession(with: device, over: radio)
    try executor.drive {
      try await session.write(
        [1, 0, 0, 0, 0, 0, 0, 0], to: Characteristic(.lockCommand), idempotency: .nonIdempotent)
      await session.close()
    }
    var ledger = DemoLedger()
    ledger.add(1, "open", .succeeded([]))
    #expect(ledger.compare(with: lock.counters).map(\.agrees) == [true])
    ledger.add(1, "open", .notSent(.disconnected))
    ledger.add(2, "close", .succeeded([]))
    #expect(ledger.compare(with: lock.counters).map(\.agrees) == [true, false, false])
    #expect(ledger.compare(with: lock.counters).map(\.counted) == [1, 1, 0])
  }

  @Test("An outcome allows what it says and no more")
  func allowed() {
    #expect(Outcome<[UInt8]>.succeeded([]).allowed == 1...1)
    #expect(Outcome<[UInt8]>.notSent(.cancelled).allowed == 0...0)
    let proven = Rejection(code: .writeNotPermitted, provesNotApplied: true)
    #expect(Outcome<[UInt8]>.rejected(proven).allowed == 0...0)
    let open = Rejection(code: .unlikelyError, provesNotApplied: false)
    #expect(Outcome<[UInt8]>.rejected(open).allowed == 0...1)
  }
}
