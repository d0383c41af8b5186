import BluetoothWire
import Relink
import RelinkTesting
import Testing

/// Requests that the device refuses for want of security, on a link that can be secured.
@Suite struct ATTLinkSecurityTests {
  private static let read: [UInt8] = [0x0A, 0x10, 0x00]
  private static let write: [UInt8] = [0x12, 0x10, 0x00, 7]

  private var bench: ATTBench

  init() {
    bench = ATTBench(isSecurable: true)
    bench.discover(.standard())
    _ = bench.recorder.take()
  }

  /// The device refuses the request that is out.
  private func refuse(_ opcode: UInt8, _ code: UInt8) {
    _ = bench.channel.takeSent()
    bench.receive([0x01, opcode, 0x10, 0x00, code])
  }

  private func secured(_ level: SecurityLevel) {
    bench.channel.security = level
    bench.channel.handler?.channelSecured(level)
  }

  @Test(arguments: [UInt8(0x05), 0x0F])
  mutating func aRequestIsAskedAgainOnceTheLinkIsSecured(_ code: UInt8) {
    #expect(bench.perform(.write(.level, [7])) == .accepted)
    let id = bench.latest
    refuse(0x12, code)
    #expect(bench.recorder.take() == [.needs(.encrypted)])
    // It keeps the bearer: nothing overtakes it.
    #expect(bench.perform(.read(.location)) == .later)
    bench.link.secure(to: .encrypted, keys: .bond)
    #expect(bench.securable?.asked == [.encrypted])
    #expect(bench.channel.takeSent() == [])
    secured(.encrypted)
    #expect(bench.recorder.take() == [.secured(.encrypted)])
    #expect(bench.channel.takeSent() == [Self.write])
    bench.receive([0x13])
    #expect(bench.recorder.take() == [.answered(id, .success(.done))])
  }

  @Test mutating func eachLevelIsTriedOnce() {
    let steps: [(SecurityLevel, SecurityLevel?)] = [
      (.none, .encrypted), (.encrypted, .authenticated), (.authenticated, .secureConnections),
      (.secureConnections, nil),
    ]
    for (level, next) in steps {
      bench.channel.security = level
      #expect(bench.perform(.read(.level)) == .accepted)
      refuse(0x0A, 0x05)
      if let next {
        #expect(bench.recorder.take() == [.needs(next)])
        bench.link.declineSecurity()
        bench.executor.run()
      }
      #expect(
        bench.recorder.take() == [.answered(bench.latest, .failure(.rejected(.insufficientAuthentication)))])
    }
  }

  @Test mutating func anEncryptedLinkIsNotEncryptedAgain() {
    bench.channel.security = .encrypted
    #expect(bench.perform(.read(.level)) == .accepted)
    refuse(0x0A, 0x0F)
    #expect(
      bench.recorder.take() == [.answered(bench.latest, .failure(.rejected(.insufficientEncryption)))])
  }

  @Test mutating func theDevicesAnswerIsDeliveredWhereTheLinkCannotBeSecured() {
    #expect(bench.perform(.read(.level)) == .accepted)
    let id = bench.latest
    refuse(0x0A, 0x0F)
    bench.link.secure(to: .encrypted, keys: .bond)
    _ = bench.recorder.take()
    bench.channel.handler?.channelNotSecured(LinkLoss(.bondMissing))
    #expect(
      bench.recorder.take() == [
        .notSecured(LinkLoss(.bondMissing)), .answered(id, .failure(.rejected(.insufficientEncryption))),
      ])
    #expect(bench.perform(.read(.level)) == .accepted)
  }

  @Test mutating func aRequestThatNobodyWaitsForIsNotAskedAgain() {
    #expect(bench.perform(.write(.level, [7])) == .accepted)
    let id = bench.latest
    refuse(0x12, 0x0F)
    // The device has refused it: it takes no effect, for certain.
    #expect(bench.link.abandon(id))
    bench.link.secure(to: .encrypted, keys: .bond)
    secured(.encrypted)
    #expect(bench.channel.takeSent() == [])
    #expect(
      bench.recorder.take() == [
        .needs(.encrypted), .secured(.encrypted),
        .answered(id, .failure(.rejected(.insufficientEncryption))),
      ])
  }

  /// The device refuses a part of a queued write that was called off before: the answer is its end.
  @Test mutating func whatWasCalledOffBeforeTheAnswerIsNotAskedAgain() {
    #expect(bench.perform(.writeLong(.level, [UInt8](repeating: 7, count: 30))) == .accepted)
    let id = bench.latest
    bench.abandon(id)
    refuse(0x16, 0x0F)
    bench.executor.run()
    #expect(bench.channel.takeSent() == [[0x18, 0x00]])
    bench.receive([0x19])
    #expect(
      bench.recorder.take() == [.answered(id, .failure(.rejected(.insufficientEncryption)))])
    secured(.encrypted)
    #expect(bench.channel.takeSent() == [])
  }

  @Test mutating func whatNobodyWaitsForAnyMoreIsNotAskedAgainWhenThereIsRoom() {
    #expect(bench.perform(.write(.level, [7])) == .accepted)
    let id = bench.latest
    refuse(0x12, 0x0F)
    bench.link.secure(to: .encrypted, keys: .bond)
    bench.channel.answerSends(with: .later)
    secured(.encrypted)
    #expect(bench.link.abandon(id))
    _ = bench.recorder.take()
    bench.becomeWritable()
    #expect(bench.channel.takeSent() == [])
    #expect(
      bench.recorder.take().contains(.answered(id, .failure(.rejected(.insufficientEncryption)))))
  }

  @Test mutating func whatIsSetAsideIsNotInDoubtWhenTheLinkGoes() {
    #expect(bench.perform(.write(.level, [7])) == .accepted)
    refuse(0x12, 0x0F)
    _ = bench.recorder.take()
    bench.lose()
    #expect(bench.recorder.take() == [.closed(.lost, inDoubt: [])])
  }

  @Test mutating func whatWasAskedAgainIsInDoubtWhenTheLinkGoes() {
    #expect(bench.perform(.write(.level, [7])) == .accepted)
    let id = bench.latest
    refuse(0x12, 0x0F)
    bench.link.secure(to: .encrypted, keys: .bond)
    secured(.encrypted)
    _ = bench.recorder.take()
    bench.lose()
    #expect(bench.recorder.take() == [.closed(.lost, inDoubt: [id])])
  }

  @Test mutating func aFullChannelPutsTheSecondAskingOff() {
    #expect(bench.perform(.read(.level)) == .accepted)
    refuse(0x0A, 0x0F)
    bench.link.secure(to: .encrypted, keys: .bond)
    bench.channel.answerSends(with: .later)
    secured(.encrypted)
    #expect(bench.channel.takeSent() == [])
    bench.becomeWritable()
    #expect(bench.channel.takeSent() == [Self.read])
  }

  /// The user's answers may take longer than a transaction may, and a channel is deaf while its link is secured.
  @Test mutating func theUsersTimeIsNotTakenForASilentDevice() {
    #expect(bench.perform(.read(.level)) == .accepted)
    refuse(0x0A, 0x0F)
    bench.link.secure(to: .encrypted, keys: .bond)
    bench.channel.answerSends(with: .later)
    #expect(bench.perform(.writeWithoutResponse(.level, [1])) == .later)
    bench.executor.advance(by: .seconds(200))
    #expect(bench.channel.closes == 0)
    secured(.encrypted)
    bench.becomeWritable()
    #expect(bench.channel.takeSent() == [Self.read])
  }

  @Test mutating func aLinkThatIsClosedSaysNoMoreOfSecurity() {
    #expect(bench.perform(.read(.level)) == .accepted)
    refuse(0x0A, 0x0F)
    bench.link.secure(to: .encrypted, keys: .bond)
    _ = bench.recorder.take()
    bench.close()
    secured(.encrypted)
    bench.executor.run()
    #expect(bench.recorder.take() == [])
    #expect(bench.channel.takeSent() == [])
  }

  @Test mutating func aLinkThatCannotBeSecuredSaysSo() {
    bench = ATTBench(to: .standard())
    bench.link.secure(to: .encrypted, keys: .bond)
    #expect(bench.recorder.take() == [])
    bench.executor.run()
    guard case .notSecured(let loss) = bench.recorder.take().first else {
      Issue.record("nothing was said")
      return
    }
    #expect(loss.reason == .notPermitted)
    // And it delivers every answer as it comes.
    #expect(bench.perform(.read(.level)) == .accepted)
    refuse(0x0A, 0x0F)
    #expect(
      bench.recorder.take() == [.answered(bench.latest, .failure(.rejected(.insufficientEncryption)))])
  }
}
