import Relink
import Testing

@testable import RelinkBlueZ

/// Sessions on a loop with a thread of its own, called from wherever a caller is.
@Suite(.timeLimit(.minutes(1))) struct UnixSessionTests {
  private static let name = Characteristic(BluetoothUUID(0x2A19 as UInt16))

  /// The outcome of a read that no link ever takes.
  private nonisolated(nonsending) func outcome(of session: DeviceSession) async -> Outcome<[UInt8]>? {
    do {
      _ = try await session.read(Self.name, within: .milliseconds(20))
      return nil
    } catch {
      return error.outcome
    }
  }

  @Test(arguments: 0..<4) func aCallerOnAnyExecutorGetsItsOutcome(place: Int) async throws {
    try await withLoop { loop in
      let device = try #require(UnixTransport.device(at: UnixListener.freshPath()))
      let session = try DeviceSession(with: device, over: UnixTransport(on: loop))
      let told =
        switch place {
        case 0: await outcome(of: session)
        case 1: await onMainActor(session)
        case 2: await withTaskExecutorPreference(loop) { await outcome(of: session) }
        default: await straightFromTheSession(session)
        }
      #expect(told == .notSent(.deadline))
      await session.close()
    }
  }

  @MainActor private func onMainActor(_ session: DeviceSession) async -> Outcome<[UInt8]>? {
    await outcome(of: session)
  }

  /// The caller may still be on the loop when it asks, and is taken elsewhere as soon as it waits.
  @concurrent private func straightFromTheSession(_ session: DeviceSession) async -> Outcome<[UInt8]>? {
    await session.disconnect()
    _ = try? await session.connect(within: .milliseconds(1))
    return await outcome(of: session)
  }
}
