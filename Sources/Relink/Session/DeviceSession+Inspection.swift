// What a session keeps, for tests that look for something that is left over.
extension DeviceSession {
  /// How many callers wait for an outcome or for ready, and how many operations are unsettled.
  package var openWork: (waiters: Int, unsettled: Int) {
    (waiters.count + connectWaiters.count, operations.entries.count)
  }
}
