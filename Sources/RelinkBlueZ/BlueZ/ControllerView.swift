internal import BluetoothWire
internal import CBlueZ
internal import Glibc
internal import Relink

/// The events of one adapter's controller, read and never answered; used on the loop.
///
/// The kernel queues an event here before it acts on it itself, so the reason of a loss is there before the socket of the
/// link says anything.
final class ControllerView: DescriptorHandler {
  /// How many events are read in one turn of the loop.
  private static let mostPerTurn = 64
  /// More than the socket's receive buffer holds.
  private static let everything = 1024

  let adapter: UInt16
  private let loop: RadioLoop
  private let heard: @Sendable (HCIEvent) -> Void
  private let ended: @Sendable () -> Void
  private var registration: DescriptorRegistration?

  /// Nil where the socket cannot be had; to be called on the loop.
  ///
  /// `heard` is also called inside `readEverything`; `ended` only in a job of its own, once.
  init?(
    of adapter: UInt16, on loop: RadioLoop, heard: @escaping @Sendable (HCIEvent) -> Void,
    ended: @escaping @Sendable () -> Void
  ) {
    let opened = relink_controller_open(adapter)
    guard opened >= 0 else { return nil }
    self.adapter = adapter
    self.loop = loop
    self.heard = heard
    self.ended = ended
    guard take(OwnedDescriptor(adopting: opened)) else { return nil }
  }

  /// A view of what comes over any descriptor, for tests.
  init?(
    over descriptor: consuming OwnedDescriptor, as adapter: UInt16, on loop: RadioLoop,
    heard: @escaping @Sendable (HCIEvent) -> Void, ended: @escaping @Sendable () -> Void
  ) {
    self.adapter = adapter
    self.loop = loop
    self.heard = heard
    self.ended = ended
    guard take(descriptor) else { return nil }
  }

  private func take(_ descriptor: consuming OwnedDescriptor) -> Bool {
    registration = try? loop.register(descriptor, for: .readable, self).get()
    return registration != nil
  }

  func close() {
    if let registration { loop.close(registration) }
    registration = nil
  }

  func descriptorReady(_ events: DescriptorEvents) {
    read(atMost: Self.mostPerTurn)
    if events.contains(.hangup) { end() }
  }

  /// The adapter is gone; one that comes back under the same number needs another socket.
  private func end() {
    guard registration != nil else { return }
    close()
    loop.post { [ended] in ended() }
  }

  /// Reads what there is, so that what is told from now on was told from now on.
  func readEverything() { read(atMost: Self.everything) }

  private func read(atMost limit: Int) {
    for _ in 0..<limit {
      guard let registration else { return }
      let buffer = loop.receiveBuffer
      let length = relink_receive(registration.descriptor, buffer.baseAddress, buffer.count)
      guard length > 0 else {
        // Whoever reads it takes the socket's error with it, and the loop would not hear of it.
        if length != -Int64(EAGAIN) { end() }
        return
      }
      let packet = UnsafeRawBufferPointer(start: buffer.baseAddress, count: min(Int(length), buffer.count))
      if let event = try? HCIEvent(decoding: packet.bytes) { heard(event) }
    }
  }
}

// Everything that is not `let` is touched on the loop alone.
extension ControllerView: @unchecked Sendable {}
