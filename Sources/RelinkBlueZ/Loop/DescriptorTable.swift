/// What a descriptor is ready for.
struct DescriptorEvents: OptionSet, Sendable {
  var rawValue: UInt32

  static let readable = DescriptorEvents(rawValue: 0x001)
  static let writable = DescriptorEvents(rawValue: 0x004)
  static let error = DescriptorEvents(rawValue: 0x008)
  static let hangup = DescriptorEvents(rawValue: 0x010)
  static let peerHangup = DescriptorEvents(rawValue: 0x2000)
}

/// A descriptor in the care of a loop.
///
/// The generation tells it from an earlier one of the same number, whose events may still be in hand.
package struct DescriptorRegistration: Hashable, Sendable {
  package let descriptor: Int32
  let generation: UInt32

  /// Both in one word, as the kernel carries them with each event.
  var tag: UInt64 { UInt64(generation) << 32 | UInt64(UInt32(bitPattern: descriptor)) }
}

/// Who is told that a descriptor is ready, on the loop and outside any job.
protocol DescriptorHandler: AnyObject, Sendable {
  func descriptorReady(_ events: DescriptorEvents)
}

/// The descriptors of one loop by number, each with its generation and its handler.
struct DescriptorTable {
  private struct Slot {
    var generation: UInt32 = 0
    /// Nil when the descriptor is closed.
    var handler: (any DescriptorHandler)?
  }

  private var slots: [Slot] = []
  private(set) var count = 0

  mutating func add(_ descriptor: Int32, _ handler: any DescriptorHandler) -> DescriptorRegistration {
    let index = Int(descriptor)
    while slots.count <= index { slots.append(Slot()) }
    // Generation 0 belongs to the loop's own descriptors.
    let generation = slots[index].generation == .max ? 1 : slots[index].generation + 1
    slots[index] = Slot(generation: generation, handler: handler)
    count += 1
    return DescriptorRegistration(descriptor: descriptor, generation: generation)
  }

  func contains(_ registration: DescriptorRegistration) -> Bool {
    handler(tag: registration.tag) != nil
  }

  /// Puts another handler in the place of the one that it returns.
  mutating func setHandler(
    _ handler: any DescriptorHandler, for registration: DescriptorRegistration
  ) -> (any DescriptorHandler)? {
    guard let before = self.handler(tag: registration.tag) else { return nil }
    slots[Int(registration.descriptor)].handler = handler
    return before
  }

  /// Forgets a descriptor; nil when it is not in the table any more.
  ///
  /// The caller lets go of the handler: what dies with it may come back here.
  mutating func remove(_ registration: DescriptorRegistration) -> (any DescriptorHandler)? {
    guard let handler = handler(tag: registration.tag) else { return nil }
    slots[Int(registration.descriptor)].handler = nil
    count -= 1
    return handler
  }

  /// The handler that an event's tag names; nil for an event of a descriptor that is gone.
  func handler(tag: UInt64) -> (any DescriptorHandler)? {
    let index = Int(tag & 0xFFFF_FFFF)
    guard index < slots.count, slots[index].generation == UInt32(tag >> 32) else { return nil }
    return slots[index].handler
  }

  /// Those that are open.
  var registrations: [DescriptorRegistration] {
    slots.indices.filter { slots[$0].handler != nil }.map {
      DescriptorRegistration(descriptor: Int32($0), generation: slots[$0].generation)
    }
  }
}
