public import BluetoothWire
internal import Relink

/// Which adapter of the host a transport uses.
@nonexhaustive
public enum AdapterSelection: Hashable, Sendable, CustomStringConvertible {
  /// Any that is on; the kernel chooses.
  case any
  /// The adapter with this number now. It is its address from then on, so that it is found again under another number.
  case index(UInt16)
  /// The adapter with this public address; it may be plugged in later.
  case address(BluetoothAddress)

  /// Reads `hci0`, `0`, an address or `any`.
  ///
  /// - Parameter text: The text; anything else makes it nil.
  public init?(_ text: String) {
    if text == "any" {
      self = .any
    } else if let address = BluetoothAddress(text) {
      self = .address(address)
    } else if let index = UInt16(text.hasPrefix("hci") ? String(text.dropFirst(3)) : text) {
      self = .index(index)
    } else {
      return nil
    }
  }

  /// The text that ``init(_:)`` reads.
  public var description: String {
    switch self {
    case .any: "any"
    case .index(let index): "hci\(index)"
    case .address(let address): address.description
    }
  }

  /// The same adapter by the address that it has now; where the controller has none (it reports zero), by its number.
  func resolved(among adapters: [AdapterRecord]) throws(RelinkError) -> AdapterSelection {
    guard case .index(let index) = self else { return self }
    guard let adapter = adapters.first(where: { $0.index == index }) else {
      let known = adapters.map { "hci\($0.index)" }.joined(separator: ", ")
      throw RelinkError(
        .adapterUnavailable,
        "There is no adapter hci\(index); \(known.isEmpty ? "there is none at all, plug one in" : "there is \(known)")."
      )
    }
    return adapter.address.value == 0 ? self : .address(adapter.address)
  }

  func includes(_ adapter: AdapterRecord) -> Bool {
    switch self {
    case .any: true
    case .index(let index): adapter.index == index
    case .address(let address): adapter.address == address
    }
  }

  /// What the adapters that are meant can do now: the best of them decides.
  func state(among adapters: [AdapterRecord]) -> AdapterState {
    let meant = adapters.filter(includes)
    if meant.contains(where: { $0.isUp && !$0.isAsleep }) { return .on }
    if meant.contains(where: \.isAsleep) { return .suspended }
    if meant.contains(where: { !$0.isBlocked }) { return .off }
    return meant.isEmpty ? .missing : .blocked
  }
}
