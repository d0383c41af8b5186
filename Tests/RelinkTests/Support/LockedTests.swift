import Testing

@testable import Relink

@Suite struct LockedTests {
  private struct Refused: Error, Equatable { var number: Int }

  @Test func whatManyTasksDoUnderTheLockIsNotLost() async {
    let counter = Locked(0)
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask { for _ in 0..<1_000 { counter.withLock { $0 += 1 } } }
      }
    }
    #expect(counter.withLock { $0 } == 8_000)
  }

  @Test func anErrorComesOutAsItIsAndLeavesTheLockFree() {
    let value = Locked(1)
    #expect(throws: Refused(number: 7)) {
      try value.withLock { (value: inout Int) throws(Refused) in
        value = 2
        throw Refused(number: 7)
      }
    }
    #expect(value.withLock { $0 } == 2)
  }

  @Test func aValueThatCannotBeCopiedCanBeHeld() {
    struct Token: ~Copyable { var number: Int }
    let held = Locked(Token(number: 3))
    #expect(held.withLock { $0.number } == 3)
    let taken = held.withLock { token -> Int in
      defer { token = Token(number: 4) }
      return token.number
    }
    #expect(taken == 3)
    #expect(held.withLock { $0.number } == 4)
  }
}
