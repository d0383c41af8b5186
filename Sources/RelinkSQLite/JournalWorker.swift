internal import Relink

/// The life of a store's thread.
enum JournalWorker {
  /// Opens the file, says how that went, and serves the queue until nobody can ask any more.
  static func run(
    path: String, system: String?, queue: JournalQueue, opened: (JournalStoreError?) -> Void
  ) {
    var ledger: JournalLedger?
    do throws(JournalStoreError) {
      ledger = try JournalLedger(at: path, system: system)
      opened(nil)
    } catch {
      return opened(error)
    }
    while true {
      switch queue.next() {
      case .jobs(let jobs):
        serve(jobs, from: queue, ledger)
      case .close:
        ledger?.close()
        ledger = nil
        queue.didClose()
      case .end:
        return
      }
    }
  }

  private static func serve(_ jobs: [JournalJob], from queue: JournalQueue, _ ledger: JournalLedger?) {
    let work = jobs.filter { $0.refusal == nil }
    let results = work.isEmpty ? [] : ledger?.commit(work) ?? []
    queue.finished(work)
    precondition(results.count == work.count, "a job without its answer")
    var next = results.makeIterator()
    for job in jobs {
      if let refusal = job.refusal {
        job.answer(.failure(refusal))
      } else if let result = next.next() {
        job.answer(result)
      }
    }
    // What nobody waits for comes after the answers.
    if !work.isEmpty { ledger?.tidy() }
  }
}
