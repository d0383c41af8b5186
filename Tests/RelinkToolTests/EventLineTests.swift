import Foundation
import Relink
import Testing

@testable import relink_tool

@Suite("Events as lines")
struct EventLineTests {
  private static let info = DisconnectInfo(
    reason: .supervisionTimeout, evidence: [.hci(.connectionTimeout), .observation("say \"no\"\n\\")],
    confidence: .high, recovery: .retryConnection, willReconnect: true, generation: nil, inDoubt: 2)

  private static let readiness = Readiness(
    generation: Generation(rawValue: 3), outage: .milliseconds(1500), attempts: 2, mtu: 247, roundTrips: 4,
    tableChanged: true, continuity: .unknown, security: .authenticated)

  static let events: [ConnectionEvent] = [
    .snapshot(Snapshot(state: .idle(.neverAsked), since: .zero)), .idle(.disconnected),
    .waiting(for: .backoff, until: nil),
    .connecting(AttemptInfo(number: 1, remaining: nil, isReconnection: false, after: .notFound)),
    .phase(.discovering), .attemptFailed(info), .ready(readiness), .disconnected(info), .missed(7),
    .ended(.closed),
  ]

  @Test("Each event is one JSON object on one line", arguments: events)
  func json(event: ConnectionEvent) throws {
    let line = EventLine(event).json(time: "12:00")
    #expect(!line.contains("\n"))
    let object = try #require(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
    #expect(object["time"] as? String == "12:00")
    #expect(object["event"] as? String == EventLine(event).name)
  }

  @Test("Readiness says how far the link is secured, and nothing where that is not at all")
  func security() {
    #expect(EventLine(.ready(Self.readiness)).text.hasSuffix(", table changed, authenticated"))
    #expect(EventLine(.ready(Self.readiness)).json(time: "").contains("\"security\":\"authenticated\""))
    var plain = Self.readiness
    plain.security = .none
    #expect(EventLine(.ready(plain)).text.hasSuffix(", table changed"))
  }

  @Test("A loss keeps its evidence and what is in doubt")
  func loss() throws {
    let line = EventLine(.disconnected(Self.info))
    let object = try #require(
      JSONSerialization.jsonObject(with: Data(line.json(time: "").utf8)) as? [String: Any])
    #expect(object["inDoubt"] as? Int == 2)
    #expect((object["evidence"] as? String)?.hasSuffix("say \"no\"\n\\") == true)
    #expect(line.text.contains("2 in doubt"))
  }

  @Test(
    "Spans have a unit that suits them",
    arguments: [
      (Duration.milliseconds(20), "20 ms"), (.milliseconds(9999), "9999 ms"), (.seconds(10), "10 s"),
      (.seconds(600), "10 min"),
    ])
  func spans(span: Duration, text: String) {
    #expect(span.short == text)
  }
}
