internal import Dispatch
internal import Foundation
internal import Relink
internal import RelinkBlueZ

/// Holds a session until it is interrupted, and prints every event, value and failure.
struct WatchCommand: Sendable {
  /// The way to the device.
  enum Way: Hashable {
    case bluez
    case unix
  }

  var device: DeviceID
  var way: Way
  var adapter = AdapterSelection.any
  var reads: [Characteristic] = []
  var every = Duration.seconds(1)
  var notified: [Characteristic] = []
  var isJSON = false

  init(_ arguments: Arguments) throws(UsageError) {
    var arguments = arguments
    var target: String?
    var over: String?
    while let word = arguments.next() {
      switch word {
      case "--over": over = try arguments.value(of: word)
      case "--read": reads.append(try Characteristic(argument: try arguments.value(of: word)))
      case "--notify": notified.append(try Characteristic(argument: try arguments.value(of: word)))
      case "--every": every = try Duration(argument: try arguments.value(of: word))
      case "--adapter":
        let text = try arguments.value(of: word)
        guard let selection = AdapterSelection(text) else {
          throw UsageError(message: "\(text) is not an adapter: write hci0, its address, or any")
        }
        adapter = selection
      case "--json": isJSON = true
      case _ where word.hasPrefix("-"): throw UsageError(message: "watch has no option \(word)")
      case _ where target != nil: throw UsageError(message: "watch takes one device, not also \(word)")
      default: target = word
      }
    }
    if let over, over != "bluez" {
      guard over.hasPrefix("unix:") else { throw UsageError(message: "--over is bluez or unix:PATH") }
      guard target == nil || target == over else {
        throw UsageError(message: "with --over unix:PATH the path is the device")
      }
      target = over
    }
    guard let target else { throw UsageError(message: "watch needs a device") }
    guard let device = DeviceID(target) else {
      throw UsageError(
        message: "\(target) is not a device: write the type of the address too, C0:DE:00:00:00:01/random")
    }
    self.device = device
    way = target.hasPrefix("unix:") ? .unix : .bluez
    if way == .bluez && device.address == nil {
      throw UsageError(message: "\(target) is not a Bluetooth address")
    }
  }

  func run() async throws -> Int32 {
    let transport: any Transport =
      switch way {
      case .bluez: try BlueZTransport(adapter: adapter)
      case .unix: try UnixTransport()
      }
    let log = WatchLog(isJSON: isJSON, executor: transport.executor)
    let session = try DeviceSession(with: device, over: transport)
    let interrupt = Interrupt()
    let source = interrupt.listen()
    defer { source.cancel() }
    let pacer = Pacer(on: transport.executor)
    await withTaskGroup(of: Void.self) { group in
      group.addTask(executorPreference: transport.executor) {
        for await event in session.events() { log.print(event) }
        interrupt.end()
        pacer.end()
      }
      for name in reads {
        group.addTask(executorPreference: transport.executor) { await read(name, from: session, pacer, log) }
      }
      for name in notified {
        group.addTask(executorPreference: transport.executor) { await follow(name, of: session, log) }
      }
      group.addTask(executorPreference: transport.executor) {
        do throws(RelinkError) {
          try await session.connect(within: .never)
        } catch {
          if error.code != .ended { log.print(error) }
        }
      }
      group.addTask(executorPreference: transport.executor) {
        await interrupt.wait()
        await session.close()
      }
    }
    return 0
  }

  private func read(
    _ name: Characteristic, from session: DeviceSession, _ pacer: Pacer, _ log: WatchLog
  ) async {
    while true {
      do throws(RelinkError) {
        log.print("read", name, try await session.read(name))
      } catch {
        if error.code == .ended || error.outcome == .notSent(.ended) { return }
        log.print("read", name, error)
      }
      guard await pacer.wait(every) else { return }
    }
  }

  private func follow(_ name: Characteristic, of session: DeviceSession, _ log: WatchLog) async {
    do throws(RelinkError) {
      for try await update in session.notifications(from: name) { log.print(name, update) }
    } catch {
      if error.code != .ended { log.print("notify", name, error) }
    }
  }
}

/// What a signal is passed on through: a handler may do little more than write.
private let interruptPipe: (read: Int32, write: Int32) = {
  var ends: [Int32] = [-1, -1]
  _ = pipe(&ends)
  for end in ends {
    _ = fcntl(end, F_SETFD, FD_CLOEXEC)
    _ = fcntl(end, F_SETFL, O_NONBLOCK)
  }
  return (ends[0], ends[1])
}()

/// The wish of the user to stop: SIGINT or SIGTERM.
private final class Interrupt: Sendable {
  private let stream: AsyncStream<Void>
  private let continuation: AsyncStream<Void>.Continuation

  init() {
    (stream, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
  }

  /// Begins to listen; what it returns has to be kept as long as it shall listen.
  ///
  /// A signal source of the dispatch library reads signals that wait, and now and then loses one to the main thread, which
  /// lets them through while it sleeps.
  func listen() -> any DispatchSourceRead {
    let source = DispatchSource.makeReadSource(fileDescriptor: interruptPipe.read)
    source.setEventHandler { [continuation] in continuation.yield() }
    source.activate()
    for number in [SIGINT, SIGTERM] {
      signal(number) { _ in
        var octet: UInt8 = 0
        _ = write(interruptPipe.write, &octet, 1)
      }
    }
    return source
  }

  func wait() async {
    for await _ in stream { return }
  }

  func end() {
    continuation.finish()
  }
}

/// Waits on an executor's timer, so that no thread and no sleeping task is needed.
private final class Pacer: Sendable {
  private struct State {
    var last = 0
    var isEnded = false
    var waiting: [Int: CheckedContinuation<Bool, Never>] = [:]
  }

  private let executor: any SessionExecutor
  private let state = Locked(State())

  init(on executor: any SessionExecutor) {
    self.executor = executor
  }

  /// Waits; false when there is nothing more to wait for.
  func wait(_ span: Duration) async -> Bool {
    await withCheckedContinuation { continuation in
      let number = state.withLock { state -> Int? in
        if state.isEnded { return nil }
        state.last += 1
        state.waiting[state.last] = continuation
        return state.last
      }
      guard let number else { return continuation.resume(returning: false) }
      executor.post { [executor] in
        executor.setTimer(TimerID(owner: self, number: number), at: executor.now.advanced(by: span)) {
          self.resume(number)
        }
      }
    }
  }

  func end() {
    let waiting = state.withLock { state in
      state.isEnded = true
      defer { state.waiting.removeAll() }
      return Array(state.waiting.values)
    }
    for continuation in waiting { continuation.resume(returning: false) }
  }

  private func resume(_ number: Int) {
    state.withLock { $0.waiting.removeValue(forKey: number) }?.resume(returning: true)
  }
}
