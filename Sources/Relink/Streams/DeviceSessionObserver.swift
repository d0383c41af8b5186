public import RelinkCore

/// Hears what happens to a session, for code that does not use streams.
///
/// It is told what ``DeviceSession/events(buffering:)`` tells, in the same order, by a task that prefers the session's
/// executor; each method should return at once. *Connected* means ready: the link is up, secured as asked, its
/// subscriptions are armed and the app's setup is done. A link that comes up and drops before that was never connected.
///
/// Every method has an implementation that does nothing, except ``deviceDisconnected(_:info:)``, whose own calls
/// ``deviceDisconnected(_:pairingError:)``: implement one of the two.
public protocol DeviceSessionObserver: AnyObject, Sendable {
  /// An attempt to connect begins; there may be many before one succeeds.
  func deviceConnecting(_ device: DeviceID)

  /// The session is ready.
  func deviceConnected(_ device: DeviceID)

  /// An attempt ended before the session was ready.
  func deviceConnectionFailed(_ device: DeviceID, info: DisconnectInfo)

  /// The session was ready and is not any more: why, and what to do.
  ///
  /// It may come back by itself: see ``DisconnectInfo/willReconnect``. Act on ``deviceConnected(_:)``, not on this.
  func deviceDisconnected(_ device: DeviceID, info: DisconnectInfo)

  /// The session was ready and is not any more; `pairingError` says whether its pairing has to be made anew.
  @available(*, deprecated, message: "Implement deviceDisconnected(_:info:), which says why and what to do.")
  func deviceDisconnected(_ device: DeviceID, pairingError: Bool)

  /// The session has ended; nothing follows.
  func deviceSessionEnded(_ device: DeviceID, reason: EndReason)
}

extension DeviceSessionObserver {
  /// Does nothing.
  public func deviceConnecting(_ device: DeviceID) {}

  /// Does nothing.
  public func deviceConnected(_ device: DeviceID) {}

  /// Does nothing.
  public func deviceConnectionFailed(_ device: DeviceID, info: DisconnectInfo) {}

  /// Tells the older method whether the pairing has to be made anew.
  public func deviceDisconnected(_ device: DeviceID, info: DisconnectInfo) {
    let isPairingError = info.recovery == .removePairingAndPairAgain || info.recovery == .retryPairing
    let forwarding: any PairingErrorForwarding = OlderObservers()
    forwarding.tell(self, device, isPairingError)
  }

  /// Does nothing.
  public func deviceDisconnected(_ device: DeviceID, pairingError: Bool) {}

  /// Does nothing.
  public func deviceSessionEnded(_ device: DeviceID, reason: EndReason) {}
}

/// Reaches the deprecated method without a warning: only its witness is deprecated.
private protocol PairingErrorForwarding {
  func tell(_ observer: any DeviceSessionObserver, _ device: DeviceID, _ isPairingError: Bool)
}

private struct OlderObservers: PairingErrorForwarding {
  @available(*, deprecated)
  func tell(_ observer: any DeviceSessionObserver, _ device: DeviceID, _ isPairingError: Bool) {
    observer.deviceDisconnected(device, pairingError: isPairingError)
  }
}

/// Keeps an observer observing: it hears nothing more once the token is cancelled or dropped.
public final class ObservationToken: Sendable {
  private let task: AppTask

  init(_ task: AppTask) {
    self.task = task
  }

  deinit {
    task.cancel()
  }

  /// Ends the observation; at most the call that is under way is still made.
  public func cancel() {
    task.cancel()
  }
}

extension DeviceSession {
  /// Has an observer told what happens to the session, from where it stands now.
  ///
  /// The observer is held weakly. The observation keeps the session alive as a stream of its events does, and ends with
  /// the session, with the token, or with the observer.
  ///
  /// - Parameter observer: Who is told.
  /// - Returns: What the observation lasts as long as.
  public nonisolated func observe(with observer: any DeviceSessionObserver) -> ObservationToken {
    // Made here and not in the task: what happens from now on is told.
    let events = events()
    let device = device
    return ObservationToken(
      AppTask.run(on: executor) { [weak observer] in
        var story = ObserverStory()
        for await event in events {
          for call in story.heard(event) {
            guard let observer, !Task.isCancelled else { return }
            call.make(on: observer, device)
          }
        }
      })
  }
}

/// Makes the calls of an observer from the events of a stream, so that both tell the same story, also where the stream
/// lost events and goes on from a snapshot.
struct ObserverStory {
  enum Call: Equatable {
    case connecting
    case connected
    case failed(DisconnectInfo)
    case disconnected(DisconnectInfo)
    case ended(EndReason)

    func make(on observer: any DeviceSessionObserver, _ device: DeviceID) {
      switch self {
      case .connecting: observer.deviceConnecting(device)
      case .connected: observer.deviceConnected(device)
      case .failed(let info): observer.deviceConnectionFailed(device, info: info)
      case .disconnected(let info): observer.deviceDisconnected(device, info: info)
      case .ended(let reason): observer.deviceSessionEnded(device, reason: reason)
      }
    }
  }

  private enum Place: Equatable {
    case apart
    case connecting
    case connected(Generation)
  }

  private var place = Place.apart

  mutating func heard(_ event: ConnectionEvent) -> [Call] {
    switch event {
    case .snapshot(let snapshot):
      return caughtUp(with: snapshot)
    case .connecting:
      place = .connecting
      return [.connecting]
    case .ready(let readiness):
      place = .connected(readiness.generation)
      return [.connected]
    case .attemptFailed(let info):
      place = .apart
      return [.failed(info)]
    case .disconnected(let info):
      place = .apart
      return [.disconnected(info)]
    case .ended(let reason):
      return [.ended(reason)]
    case .idle, .waiting, .phase, .seen, .missed:
      return []
    }
  }

  /// What lies between the last event that was heard and this snapshot, as far as a snapshot can tell.
  private mutating func caughtUp(with snapshot: Snapshot) -> [Call] {
    var now = Place.apart
    switch snapshot.state {
    case .ready(let readiness): now = .connected(readiness.generation)
    case .connecting: now = .connecting
    case .idle, .waiting, .ended: break
    }
    defer { place = now }
    guard now != place else { return [] }
    var calls: [Call] = []
    if let info = snapshot.lastDisconnect {
      switch place {
      case .connected: calls.append(.disconnected(info))
      case .connecting where now == .apart: calls.append(.failed(info))
      case .connecting, .apart: break
      }
    }
    switch now {
    case .connecting: calls.append(.connecting)
    case .connected: calls += place == .connecting ? [.connected] : [.connecting, .connected]
    case .apart: break
    }
    return calls
  }
}
