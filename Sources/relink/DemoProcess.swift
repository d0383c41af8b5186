internal import Relink
internal import RelinkTesting

/// One process of the demonstration's gateway: its radio, its session, and what was seen of it.
///
/// The executor, the lock and the disk belong to the world and stay when it ends.
final class DemoProcess: Sendable {
  let radio: VirtualRadio
  let session: DeviceSession
  let history = EventRecorder()
  private let timeline = Locked<SpawnedTask<Void>?>(nil)

  /// Starts a process, with the lock in range.
  init(
    _ device: DeviceID, _ lock: VirtualPeripheral, store: VirtualJournalStore, on executor: ManualExecutor
  ) throws {
    var air = VirtualRadio.Configuration()
    air.latency = .milliseconds(15)
    air.connectLatency = .milliseconds(60)
    radio = VirtualRadio(on: executor, configuration: air)
    radio.add(lock, as: device)
    session = try DeviceSession(
      with: device, over: radio, configuration: Configuration(store: store, dialLimit: .seconds(180), seed: 1)
    )
  }

  /// Shows each event as it comes.
  func follow(on executor: ManualExecutor, _ show: @escaping @Sendable (ConnectionEvent) -> Void) {
    let task = executor.spawn("timeline") { [history, events = session.events(buffering: .newest(4096))] in
      for await event in events {
        history.record(event)
        show(event)
      }
    }
    timeline.withLock { $0 = task }
  }

  /// Ends it in the middle of what it does: nothing of it reaches the lock, the disk or the timeline any more.
  func kill(_ device: DeviceID, store: VirtualJournalStore) {
    timeline.withLock { $0 }?.cancel()
    radio.remove(device)
    store.crash(losingPower: false, waiters: .failed)
  }
}
