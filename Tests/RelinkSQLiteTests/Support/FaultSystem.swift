import CFaultVFS
import Synchronization
import Testing

/// A file system of SQLite's that breaks when it is told to.
final class FaultSystem: Sendable {
  /// What breaks.
  enum Kind: Int32, Sendable, CaseIterable {
    case inputOutput = 1
    case full = 2
    case power = 3
  }

  private static let count = Atomic<Int>(0)

  let name: String
  private let address: UInt

  init() throws {
    name = "fault \(FaultSystem.count.add(1, ordering: .relaxed).newValue)"
    address = UInt(bitPattern: relink_fault_create(name))
    try #require(address != 0)
  }

  deinit { relink_fault_destroy(fault) }

  private var fault: OpaquePointer? { OpaquePointer(bitPattern: address) }

  func plan(_ kind: Kind, from first: Int, count: Int = 1, seed: UInt64 = 0) {
    relink_fault_plan(fault, kind.rawValue, UInt64(first), UInt64(count), seed)
  }

  func heal() { relink_fault_heal(fault) }

  var hasFired: Bool { relink_fault_fired(fault) != 0 }
  var syncs: Int { Int(relink_fault_syncs(fault)) }

  /// Leaves on the disk what is there after the power went.
  func restart() -> Bool { relink_fault_restart(fault) == 0 }
}
