public import RelinkCore

/// A place that keeps bonds across the end of a process.
///
/// It does its work on a thread of its own, in the order in which it was asked, and says the result of each call once,
/// on any thread, never inside the call. Calls may be made on any thread and return at once. An error's message never
/// shows a key.
public protocol BondStore: AnyObject, Sendable {
  /// Hands back every bond, and the highest number that a bond ever had here.
  func load(_ done: @escaping @Sendable (Result<KeptBonds, RelinkError>) -> Void)

  /// Keeps a bond, in place of an earlier one of the same device and adapter; it survives the loss of power when `done`
  /// is called with nil.
  func keep(_ bond: Bond, _ done: @escaping @Sendable (RelinkError?) -> Void)

  /// Removes the bond of a device with an adapter; one that is not there is no error. Its keys are overwritten.
  func remove(
    _ device: DeviceID, of adapter: BluetoothAddress, _ done: @escaping @Sendable (RelinkError?) -> Void)
}

/// What a ``BondStore`` has.
public struct KeptBonds: Hashable, Sendable {
  /// The bonds, in the order of their numbers.
  public var bonds: [Bond]
  /// The highest number that a bond ever had, removed ones included; 0 where there was none.
  public var lastID: UInt64

  /// Describes what a store has.
  public init(_ bonds: [Bond] = [], lastID: UInt64 = 0) {
    self.bonds = bonds
    self.lastID = lastID
  }
}
