import Foundation
import Glibc
import Relink
import Testing

@testable import RelinkBlueZ

enum LinkEvent: Equatable, Sendable {
  case linkUp(AttemptID?)
  case attemptFailed(AttemptID, LinkLoss)
  case adapterChanged(AdapterState)
  case answered(RequestID, Result<GATTAnswer, GATTFailure>)
  case value([UInt8])
  case tableChanged
  case writable
  case closed(LinkLoss, inDoubt: [RequestID])
}

final class LinkEventRecorder: LinkHandler {
  private let facts = Facts<LinkEvent>()
  private let latest = Locked<(any Link)?>(nil)

  var all: [LinkEvent] { facts.all }
  var link: (any Link)? { latest.withLock { $0 } }
  func first(_ count: Int) async -> [LinkEvent] { await facts.first(count) }

  func linkUp(_ link: any Link, attempt: AttemptID?) {
    latest.withLock { $0 = link }
    facts.add(.linkUp(attempt))
  }

  func attemptFailed(_ attempt: AttemptID, _ loss: LinkLoss) { facts.add(.attemptFailed(attempt, loss)) }
  func adapterChanged(_ state: AdapterState) { facts.add(.adapterChanged(state)) }

  func link(_ link: LinkID, answered request: RequestID, with answer: Result<GATTAnswer, GATTFailure>) {
    facts.add(.answered(request, answer))
  }

  func link(_ link: LinkID, value: [UInt8], of characteristic: Characteristic, receivedAt: Timestamp) {
    facts.add(.value(value))
  }

  func linkTableChanged(_ link: LinkID) { facts.add(.tableChanged) }
  func linkWritable(_ link: LinkID) { facts.add(.writable) }

  func link(_ link: LinkID, closed loss: LinkLoss, inDoubt: [RequestID]) {
    facts.add(.closed(loss, inDoubt: inDoubt))
  }
}

/// A socket that listens at a path of its own.
final class UnixListener: Sendable {
  let path: String
  let descriptor: Int32

  init(at path: String, type: __socket_type = SOCK_SEQPACKET) throws {
    self.path = path
    unlink(path)
    descriptor = socket(AF_UNIX, Int32(type.rawValue), 0)
    try #require(descriptor >= 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix(107)) }
    let bound = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    try #require(bound == 0)
    try #require(listen(descriptor, 8) == 0)
  }

  deinit {
    close(descriptor)
    unlink(path)
  }

  /// The next connection; waits for it at most 10 s.
  func accept() throws -> FarEnd {
    var events = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    try #require(poll(&events, 1, 10_000) == 1)
    let accepted = Glibc.accept(descriptor, nil, nil)
    try #require(accepted >= 0)
    return FarEnd(accepted)
  }

  static func freshPath() -> String {
    FileManager.default.temporaryDirectory.appendingPathComponent("relink-\(UUID().uuidString).sock").path
  }
}

/// A peripheral written in another language, as a process of its own: it agrees on an MTU of 64 with each client,
/// answers no other request, and hangs up on a write command.
final class PythonPeripheral {
  static let script = """
    import socket, sys
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(sys.argv[1])
    listener.listen()
    while True:
        link, _ = listener.accept()
        while True:
            try:
                pdu = link.recv(600)
            except ConnectionResetError:
                break
            if not pdu or pdu[0] == 0x52:
                break
            if pdu[0] == 0x02:
                link.send(bytes([0x03, 64, 0]))
        link.close()
    """

  let path = UnixListener.freshPath()
  private let process = Process()

  init() throws {
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["python3", "-c", Self.script, path]
    // It would keep the output of tests that crashed open, and whoever reads that waiting.
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
  }

  func kill() {
    Glibc.kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
    unlink(path)
  }
}

/// What a test needs to dial over Unix sockets.
struct UnixRig {
  let loop: RadioLoop
  let transport: UnixTransport
  let device: DeviceID
  let recorder = LinkEventRecorder()

  init(_ loop: RadioLoop, path: String) throws {
    self.loop = loop
    transport = UnixTransport(on: loop)
    device = try #require(UnixTransport.device(at: path))
    try transport.register(recorder, for: device)
  }

  func dial(_ number: UInt64 = 1, limit: Duration? = nil) async throws -> any Attempt {
    try await loop.run { [transport, device] in
      transport.dial(device, attempt: AttemptID(rawValue: number), options: DialOptions(limit: limit))
    }
  }
}
