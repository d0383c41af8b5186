/// Something to run on the loop, once.
enum LoopWork: Sendable {
  /// A piece of an actor.
  case job(UnownedJob)
  /// A piece of a task that is on no actor.
  case taskJob(UnownedJob)
  /// A posted closure.
  case closure(@Sendable () -> Void)
  /// The place of something that was taken out.
  case nothing
}

/// A queue that takes at one end and gives at the other without moving its elements each time.
struct WorkQueue {
  private var items: [LoopWork] = []
  private var head = 0

  var isEmpty: Bool { head == items.count }
  var count: Int { items.count - head }

  mutating func append(_ work: LoopWork) {
    items.append(work)
  }

  /// Puts everything of `other` behind and leaves it empty, with its storage.
  mutating func take(from other: inout [LoopWork]) {
    if isEmpty && head == 0 {
      swap(&items, &other)
    } else {
      items.append(contentsOf: other)
      other.removeAll(keepingCapacity: true)
    }
  }

  mutating func popFirst() -> LoopWork? {
    guard head < items.count else { return nil }
    // The caller lets go of the work: what dies with it may post again, while this is not in the middle of a change.
    var work = LoopWork.nothing
    swap(&work, &items[head])
    head += 1
    if head == items.count {
      items.removeAll(keepingCapacity: items.count <= 4096)
      head = 0
    } else if head >= 1024 && head * 2 >= items.count {
      items.removeFirst(head)
      head = 0
    }
    return work
  }
}
