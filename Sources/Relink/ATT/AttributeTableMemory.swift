package import RelinkCore

/// What is remembered of a device's attribute table from one link to the next.
///
/// A transport makes one per device and hands it to each link of that device. The next link trusts it only after it has
/// read the same Database Hash (Core Specification Vol 3 Part G 7.3); otherwise it serves to tell whether the table
/// changed. Holds whole tables only. May be used on any thread.
public final class AttributeTableMemory: Sendable {
  private let stored = Locked<AttributeTable?>(nil)

  /// Makes a memory that knows nothing.
  public init() {}

  /// The table of the latest link that learnt one.
  package var table: AttributeTable? {
    stored.withLock { $0 }
  }

  package func store(_ table: AttributeTable) {
    stored.withLock { $0 = table }
  }
}
