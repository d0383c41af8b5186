#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// A thread for work that waits for the disk.
enum WorkerThread {
  private final class Body {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
  }

  #if canImport(Darwin)
    private static let entry: @convention(c) (UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? = {
      context in
      Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run()
      return nil
    }
  #else
    private static let entry: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = {
      context in
      if let context { Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run() }
      return nil
    }
  #endif

  /// Runs `body` on a thread of its own, which nobody waits for; false when the system has none.
  static func start(_ body: @escaping @Sendable () -> Void) -> Bool {
    let context = Unmanaged.passRetained(Body(body))
    // The program's signals are for its own threads.
    var all = sigset_t()
    var before = sigset_t()
    sigfillset(&all)
    pthread_sigmask(SIG_SETMASK, &all, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    #if canImport(Darwin)
      var thread: pthread_t?
      let error = pthread_create(&thread, nil, entry, context.toOpaque())
      if error == 0, let thread { pthread_detach(thread) }
    #else
      var thread = pthread_t()
      let error = pthread_create(&thread, nil, entry, context.toOpaque())
      if error == 0 { pthread_detach(thread) }
    #endif
    guard error == 0 else {
      context.release()
      return false
    }
    return true
  }
}
