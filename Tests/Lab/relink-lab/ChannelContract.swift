internal import CBlueZ
internal import Glibc
internal import Relink
internal import RelinkBlueZ
internal import RelinkTesting

/// Channels over ATT sockets of the kernel, with nothing but the air at the far end.
struct LabChannelEnvironment: ChannelContractEnvironment {
  let lab: Lab
  let driver: any ContractDriver

  func connect() async throws -> (channel: any PDUChannel, far: any ChannelFarEnd) {
    _ = try await lab.stats { $0.live.isEmpty }
    try await lab.radio.tell("raw on")
    // The peripheral has seen the end of the link before the host's kernel has.
    while await driver.perform({ lab.transport.existingLinks().contains(lab.device) }) {
      await lab.pause(.milliseconds(20))
    }
    let descriptor = try dial()
    _ = try await lab.stats { !$0.live.isEmpty }
    return (
      SeqPacketChannel(adopting: OwnedDescriptor(adopting: descriptor), on: lab.loop),
      LabFarEnd(radio: lab.radio)
    )
  }

  private func dial() throws -> Int32 {
    guard let address = lab.device.address else { throw LabFailure("the device has no address") }
    let opened = relink_l2cap_open([0, 0, 0, 0, 0, 0], LabChannelEnvironment.random)
    guard opened >= 0 else { throw LabFailure("no socket: error \(-opened)") }
    let result = relink_l2cap_connect(opened, address.littleEndianBytes, LabChannelEnvironment.random)
    var look = pollfd(fd: opened, events: Int16(POLLOUT), revents: 0)
    guard result == -EINPROGRESS, poll(&look, 1, 30_000) == 1, relink_socket_error(opened) == 0 else {
      Glibc.close(opened)
      throw LabFailure("the connect ended with \(result)")
    }
    return opened
  }

  /// BDADDR_LE_RANDOM, as the kernel numbers the type of an address.
  private static let random: UInt8 = 2
}

/// The radio, which sends what it is told and keeps what arrives.
private struct LabFarEnd: ChannelFarEnd {
  private struct Values: Decodable, Sendable { var values: [String] }

  let radio: RadioControl

  private func tell(_ command: String) async {
    do { try await radio.tell(command) } catch { say("the radio: \(error)") }
  }

  func send(_ pdu: [UInt8]) async { await tell("raw send \(pdu.hexadecimal)") }

  func received() async -> [[UInt8]] {
    do {
      return try await radio.ask("raw arrived", for: Values.self).values.map { [UInt8](hexadecimal: $0) }
    } catch {
      say("the radio: \(error)")
      return []
    }
  }

  func end() async { await tell("terminate 13") }

  // The emulated controller takes whatever the kernel gives it.
  func setStalled(_ isStalled: Bool) async -> Bool { false }
}
