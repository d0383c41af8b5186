public import Relink

/// The bonds of a host in a file of SQLite of their own.
///
/// The file and those beside it (`-wal`, `-shm`, `-lock`) are readable by their owner alone; wider permissions of files
/// that are there already are narrowed. The keys are not encrypted: who may read the file has them. The keys of a bond
/// that is removed or replaced are overwritten in the file and cut from the log before the call is answered; what a disk
/// keeps of cut or moved blocks is beyond the reach of a library.
///
/// One store has a file at a time, in this process and in others. What it does happens on a thread of its own, in the
/// order of the calls.
public final class SQLiteBondStore: BondStore {
  private let thread: BondThread

  /// Opens the bonds at `path`, or makes the file where nothing is; the folder must be there.
  ///
  /// Waits for the disk. Nothing that is no file of bonds is changed.
  ///
  /// - Parameter path: Where the file is.
  /// - Throws: `system` where that cannot be: another store has it, it is something else or damaged, made by a later
  ///   version of the library, or may not be written. The message says which, and what to do.
  public init(at path: String) throws(RelinkError) {
    guard let thread = BondThread(), let opened = Signal() else {
      throw RelinkError(.system, "The process has no descriptors left for the store of bonds.")
    }
    let result = Locked<JournalStoreError?>(nil)
    let isStarted = WorkerThread.start {
      thread.run {
        do throws(JournalStoreError) { return try BondFile(at: path) } catch {
          result.withLock { $0 = error }
          return nil
        }
      } opened: {
        opened.open()
      }
    }
    guard isStarted else {
      throw RelinkError(.system, "The system has no thread left for the store of bonds.")
    }
    opened.wait()
    if let error = result.withLock({ $0 }) { throw RelinkError(.system, error.message, cause: error) }
    self.thread = thread
  }

  deinit {
    thread.end()
  }

  /// Hands back every bond, and the highest number that a bond ever had here.
  ///
  /// - Parameter done: Called once, on the store's thread.
  public func load(_ done: @escaping @Sendable (Result<KeptBonds, RelinkError>) -> Void) {
    thread.add { file in
      done(Self.tried(file) { (file) throws(JournalStoreError) in try file.load() })
    }
  }

  /// Keeps a bond, in place of an earlier one of the same device and adapter, so that it survives the loss of power.
  ///
  /// - Parameters:
  ///   - bond: The bond.
  ///   - done: Called once, on the store's thread; nil when it is kept.
  public func keep(_ bond: Bond, _ done: @escaping @Sendable (RelinkError?) -> Void) {
    thread.add { file in
      done(Self.error(Self.tried(file) { (file) throws(JournalStoreError) in try file.keep(bond) }))
    }
  }

  /// Removes the bond of a device with an adapter, and overwrites its keys.
  ///
  /// - Parameters:
  ///   - device: The device, by its identity address.
  ///   - adapter: The public address of the adapter.
  ///   - done: Called once, on the store's thread; nil when no such bond is left.
  public func remove(
    _ device: DeviceID, of adapter: BluetoothAddress, _ done: @escaping @Sendable (RelinkError?) -> Void
  ) {
    thread.add { file in
      done(
        Self.error(Self.tried(file) { (file) throws(JournalStoreError) in try file.remove(device, adapter) }))
    }
  }

  /// Does what was asked for, lets go of the file and answers all later calls with an error.
  ///
  /// Waits until that is done, unless it is called from an answer of the store.
  public func close() {
    thread.close()
  }

  private static func tried<Value>(
    _ file: BondFile?, _ body: (BondFile) throws(JournalStoreError) -> Value
  ) -> Result<Value, RelinkError> {
    guard let file else {
      return .failure(RelinkError(.ended, "The store of bonds was closed. Open it again to go on."))
    }
    do throws(JournalStoreError) { return .success(try body(file)) } catch {
      return .failure(RelinkError(.system, error.message, cause: error))
    }
  }

  private static func error(_ result: Result<Void, RelinkError>) -> RelinkError? {
    if case .failure(let error) = result { error } else { nil }
  }
}

/// The thread of one store: what it is asked for, in order.
private final class BondThread: Sendable {
  typealias Work = @Sendable (BondFile?) -> Void

  private struct State {
    var work: [Work] = []
    var isClosing = false
    var isEnded = false
    var isAsleep = false
    var thread: ThreadIdentity?
  }

  private let state = Locked(State())
  private let wake: Signal
  private let closed: Signal

  /// Nil when the process has no descriptors left.
  init?() {
    guard let wake = Signal(), let closed = Signal() else { return nil }
    self.wake = wake
    self.closed = closed
  }

  func add(_ work: @escaping Work) {
    change { $0.work.append(work) }
  }

  func end() {
    change {
      $0.isClosing = true
      $0.isEnded = true
    }
  }

  func close() {
    change { $0.isClosing = true }
    let isHere = state.withLock { $0.thread == .current }
    if !isHere { closed.wait() }
  }

  private func change(_ body: (inout State) -> Void) {
    let wakes: Bool = state.withLock { state in
      body(&state)
      defer { state.isAsleep = false }
      return state.isAsleep
    }
    if wakes { wake.send() }
  }

  /// Opens the file, says that it tried, and works until nobody can ask any more.
  func run(_ open: () -> BondFile?, opened: () -> Void) {
    var file = open()
    let isOpen = file != nil
    opened()
    guard isOpen else { return }
    while true {
      let (work, isClosing, isEnded) = state.withLock { state in
        state.thread = .current
        defer { state.work = [] }
        state.isAsleep = state.work.isEmpty && !state.isClosing
        return (state.work, state.isClosing, state.isEnded)
      }
      for item in work { item(file) }
      if !work.isEmpty { continue }
      if isClosing, file != nil {
        file = nil
        closed.open()
      } else if isEnded {
        return
      } else {
        rest()
      }
    }
  }

  private func rest() {
    // After the file was let go the thread answers with errors until the store is gone.
    let isIdle: Bool = state.withLock { state in
      state.isAsleep = state.work.isEmpty && !state.isEnded
      return state.isAsleep
    }
    if isIdle { wake.wait() }
  }
}
