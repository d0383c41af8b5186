internal import Relink
internal import RelinkTesting

/// One life of the process: a session, and what it sees of the world until it is killed.
final class Life: Sendable {
  let number: Int
  let transport: ProcessTransport
  let store: ProcessStore?
  let watch: JournalWatch
  let session: DeviceSession
  let history = EventRecorder()
  /// The link on which the session was ready when a write was called.
  let births: Locked<[UInt64: Generation]>

  init(
    _ number: Int, transport: ProcessTransport, store: ProcessStore?, watch: JournalWatch,
    session: DeviceSession, births: Locked<[UInt64: Generation]>
  ) {
    self.number = number
    self.transport = transport
    self.store = store
    self.watch = watch
    self.session = session
    self.births = births
  }

  /// Whether it has been killed: what its tasks do from then on was never done.
  var isOver: Bool { transport.isDead }

  func kill() {
    transport.kill()
    store?.kill()
  }
}
