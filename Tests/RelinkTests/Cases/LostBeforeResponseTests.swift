import BluetoothWire
import RelinkTesting
import Testing

@testable import Relink

/// Case B19: the link is lost between request and response; the tag decides, and the device counts.
@Suite struct LostBeforeResponseTests {
  enum Fate: CaseIterable {
    /// The device carried it out and could not say so.
    case appliedBeforeTheDrop
    /// The device got it and was gone before it carried it out.
    case droppedBeforeApplying
    /// The channel never took it.
    case neverHandedOver
    /// There was no link when it was asked for.
    case askedForWithoutALink
  }

  enum Way: CaseIterable { case plain, long }

  struct Cell: CustomTestStringConvertible {
    var fate: Fate
    var way: Way
    var reason: HCIErrorCode
    var testDescription: String { "\(fate), \(way), \(reason)" }

    static let all = Fate.allCases.flatMap { fate in
      Way.allCases.flatMap { way in
        [HCIErrorCode(rawValue: 0x08), .remoteUserTerminatedConnection, HCIErrorCode(rawValue: 0x3D)].map {
          Cell(fate: fate, way: way, reason: $0)
        }
      }
    }
  }

  private func write(_ scene: Scene, _ cell: Cell, _ tag: Idempotency) -> SpawnedTask<Void> {
    let value = [UInt8](repeating: 1, count: cell.way == .long ? 50 : 1)
    return scene.spawn("write") { session in
      try await session.write(
        value, to: Scene.first, idempotency: tag, options: WriteOptions(allowsLong: cell.way == .long))
    }
  }

  /// Plays the cell up to the reconnection, and returns what the caller of the write has.
  private func play(
    _ cell: Cell, _ tag: Idempotency, _ scene: Scene, _ peripheral: VirtualPeripheral
  ) throws -> SpawnedTask<Void> {
    try scene.connect()
    let pattern: RequestPattern =
      cell.way == .long ? .opcode(.executeWriteRequest) : .opcode(.writeRequest)
    let task: SpawnedTask<Void>
    switch cell.fate {
    case .appliedBeforeTheDrop, .droppedBeforeApplying:
      let reaction: ServerReaction =
        cell.fate == .appliedBeforeTheDrop ? .applyAndDrop(cell.reason) : .drop(cell.reason)
      peripheral.react(to: pattern, with: reaction, times: 1)
      task = write(scene, cell, tag)
    case .neverHandedOver:
      scene.radio.block(scene.device)
      task = write(scene, cell, tag)
      scene.executor.run()
      scene.radio.lose(scene.device, cell.reason)
    case .askedForWithoutALink:
      scene.radio.setAdvertising(false, of: scene.device)
      scene.radio.lose(scene.device, cell.reason)
      scene.executor.run()
      task = write(scene, cell, tag)
      scene.executor.advance(by: .seconds(5))
      #expect(!task.hasEnded)
      scene.radio.setAdvertising(true, of: scene.device)
    }
    scene.executor.advance(by: .seconds(20))
    #expect(scene.session.snapshot().isReady)
    #expect(task.hasEnded)
    return task
  }

  @Test("B19: an idempotent write is offered again, once", arguments: Cell.all)
  func anIdempotentWriteIsOfferedAgain(_ cell: Cell) throws {
    let peripheral = VirtualPeripheral.twoValues()
    peripheral.mtuLimit = 23
    try Scene.play(peripheral) { scene in
      let task = try play(cell, .idempotent, scene, peripheral)
      #expect(task.error == nil)
      #expect(peripheral.wr(0x0010) == (cell.fate == .appliedBeforeTheDrop ? 2 : 1))
      let wasOffered = cell.fate == .appliedBeforeTheDrop || cell.fate == .droppedBeforeApplying
      #expect(scene.recorder.disconnections.map(\.inDoubt) == [wasOffered ? 1 : 0])
    }
  }

  @Test("B19: a write that must not be repeated is in doubt, and never offered again", arguments: Cell.all)
  func aNonIdempotentWriteIsNeverOfferedAgain(_ cell: Cell) throws {
    let peripheral = VirtualPeripheral.twoValues()
    peripheral.mtuLimit = 23
    try Scene.play(peripheral) { scene in
      let task = try play(cell, .nonIdempotent, scene, peripheral)
      switch cell.fate {
      case .appliedBeforeTheDrop, .droppedBeforeApplying:
        let error = try #require(task.relinkError)
        #expect(error.code == .indeterminate)
        #expect(error.disconnect?.recovery == .retryOperation)
        let doubt = try #require(error.doubt)
        guard case .linkLost = doubt.cause else {
          Issue.record("\(doubt)")
          return
        }
        #expect(doubt.offers == 1)
        #expect(doubt.generation == Generation(rawValue: 1))
        #expect(doubt.lastPossibleEffect == doubt.offeredAt.monotonic)
        #expect(scene.recorder.disconnections.map(\.inDoubt) == [1])
        #expect(peripheral.wr(0x0010) == (cell.fate == .appliedBeforeTheDrop ? 1 : 0))
      case .neverHandedOver, .askedForWithoutALink:
        #expect(task.error == nil)
        #expect(scene.recorder.disconnections.map(\.inDoubt) == [0])
        #expect(peripheral.wr(0x0010) == 1)
      }
      scene.executor.advance(by: .seconds(120))
      #expect(peripheral.counters.received[.writeRequest, default: 0] <= 1)
      #expect(peripheral.counters.received[.executeWriteRequest, default: 0] <= 1)
    }
  }

  @Test("B19: a younger write to the same value never overtakes", arguments: Fate.allCases)
  func aWriteThatIsOfferedAgainComesBeforeYoungerOnes(_ fate: Fate) throws {
    let peripheral = VirtualPeripheral.twoValues()
    try Scene.play(peripheral) { scene in
      try scene.connect()
      switch fate {
      case .appliedBeforeTheDrop:
        peripheral.react(to: .opcode(.writeRequest), with: .applyAndDrop(), times: 1)
      case .droppedBeforeApplying: peripheral.react(to: .opcode(.writeRequest), with: .drop(), times: 1)
      case .neverHandedOver:
        scene.radio.block(scene.device)
        scene.executor.spawn("loss") { [radio = scene.radio, device = scene.device] in
          radio.lose(device, .connectionTimeout)
        }
      case .askedForWithoutALink: scene.radio.lose(scene.device, .connectionTimeout)
      }
      let tasks = (1...5).map { number in
        scene.spawn("write \(number)") { session in
          try await session.write([UInt8(number)], to: Scene.first, idempotency: .idempotent)
        }
      }
      scene.executor.advance(by: .seconds(20))
      #expect(tasks.allSatisfy { $0.hasEnded && $0.error == nil })
    }
    let values = peripheral.counters.writes(at: 0x0010).map(\.value)
    let all: [[UInt8]] = [[1], [2], [3], [4], [5]]
    #expect(values == (fate == .appliedBeforeTheDrop ? [[1]] + all : all))
  }
}
