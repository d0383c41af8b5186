internal import BluetoothWire
internal import Relink

/// One removal of a bond, with what it still waits for; used on the loop.
final class BondRemoval {
  /// The kernel answers when the link is gone, and a link goes within seconds.
  static let limit = Duration.seconds(5)

  private let device: DeviceAddress
  /// The adapters that have not answered yet.
  private(set) var awaited: [UInt16]
  /// How often the store was asked and has not answered.
  var writes = 0
  private(set) var error: RelinkError?
  let done: @Sendable (RelinkError?) -> Void

  init(
    _ device: DeviceAddress, awaiting adapters: [UInt16], _ done: @escaping @Sendable (RelinkError?) -> Void
  ) {
    self.device = device
    awaited = adapters
    self.done = done
  }

  var timer: TimerID { TimerID(owner: self, number: 0) }

  var isOver: Bool { awaited.isEmpty && writes <= 0 }

  func isAbout(_ other: ManagementAddress) -> Bool {
    other == ManagementAddress(device.address, device.managementType)
  }

  func answered(_ index: UInt16, _ status: ManagementStatus) {
    guard awaited.contains(index) else { return }
    awaited.removeAll { $0 == index }
    // An adapter that is off has lost it with its list of keys; one that never had it has nothing to lose.
    guard ![.success, .notPaired, .notPowered, .disconnected, .invalidIndex].contains(status) else { return }
    error = RelinkError(
      .notSent, "The kernel did not remove the keys of \(device.device): \(status). Try again.")
  }

  func written(_ error: RelinkError?) {
    writes -= 1
    if let error { self.error = error }
  }

  func expired() {
    guard !isOver else { return }
    (awaited, writes) = ([], 0)
    error = RelinkError(
      .notSent,
      "The kernel or the store did not say in \(Self.limit) whether the bond with \(device.device) is gone. Try again."
    )
  }
}

// Everything that is not `let` is touched on the loop alone.
extension BondRemoval: @unchecked Sendable {}
