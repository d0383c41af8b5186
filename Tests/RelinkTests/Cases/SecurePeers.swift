import BluetoothWire
import RelinkTesting

@testable import Relink

extension VirtualPeripheral {
  /// A peripheral with a value at 0x0010 that only a secured link may read and write, and one at 0x0020 for everybody,
  /// each with its configuration behind it.
  static func halfProtected(_ security: VirtualSecurity = .encrypted) -> VirtualPeripheral {
    let properties: CharacteristicProperties = [.read, .write, .writeWithoutResponse, .notify]
    return VirtualPeripheral(
      services: [
        VirtualService(
          BluetoothUUID(0xFFF0),
          characteristics: [
            VirtualCharacteristic(
              Scene.first.uuid, properties, value: [0x0A], valueHandle: 0x0010, security: security),
            VirtualCharacteristic(Scene.second.uuid, properties, value: [0x0B], valueHandle: 0x0020),
          ])
      ])
  }

  /// How often the device was asked to pair.
  var pairingRequests: Int { counters.pairingRequests }

  /// How often a link was encrypted.
  var encryptions: Int { counters.encryptions }
}

/// Somebody who is asked while a device is being paired.
final class AskedUser: Sendable {
  private struct State {
    var asked: [PairingQuestion] = []
    var given: [PairingAnswer] = []
    var cancelled = 0
    var waiting: CheckedContinuation<Void, Never>?
    var isCalledOff = false
  }

  private let state = Locked(State())
  private let answer: @Sendable (PairingQuestion) -> PairingAnswer?

  /// Answers at once; where `answer` is nil, only when nobody wants to know any more.
  init(_ answer: @escaping @Sendable (PairingQuestion) -> PairingAnswer?) {
    self.answer = answer
  }

  var asked: [PairingQuestion] { state.withLock { $0.asked } }
  /// How often an answer was not waited for.
  var cancelled: Int { state.withLock { $0.cancelled } }

  var closure: @Sendable (PairingQuestion) async -> PairingAnswer {
    { [self] question in
      state.withLock { state in
        state.asked.append(question)
        state.isCalledOff = false
      }
      if let answer = answer(question) { return answer }
      await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
          let isOver = state.withLock { state in
            if !state.isCalledOff { state.waiting = continuation }
            return state.isCalledOff
          }
          if isOver { continuation.resume() }
        }
      } onCancel: {
        let waiting = state.withLock { state in
          state.isCalledOff = true
          state.cancelled += 1
          return state.waiting.take()
        }
        waiting?.resume()
      }
      // Too late to change anything.
      return question == .passkeyEntry ? .passkey(0) : .accept
    }
  }
}

extension Snapshot {
  /// What the user has to do before anything is tried again.
  var userAction: RecoveryAction? {
    if case .waiting(.userAction(let action), _) = state { action } else { nil }
  }
}

extension AdapterState {
  /// Those in which an adapter can be of no use.
  static let away: [AdapterState] = [.off, .blocked, .missing, .suspended]

  /// What a session waits for then.
  var waitReason: WaitReason {
    switch self {
    case .on, .off: .adapterOff
    case .blocked: .adapterBlocked
    case .suspended: .suspended
    case .missing: .adapterMissing
    case .notPermitted: .notPermitted
    }
  }

  /// What a link or an attempt ends with then.
  var lossReason: DisconnectReason {
    switch self {
    case .on, .off: .adapterOff
    case .blocked: .adapterBlocked
    case .suspended: .suspended
    case .missing: .adapterMissing
    case .notPermitted: .notPermitted
    }
  }
}
