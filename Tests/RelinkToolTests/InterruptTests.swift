import Foundation
import Testing

/// The tool as a process of its own, as its users run it.
@Suite(.timeLimit(.minutes(1))) struct InterruptTests {
  @Test("watch ends when it is interrupted while the device is absent")
  func interrupt() throws {
    let tool = Bundle.main.bundleURL.appendingPathComponent("relink")
    let process = Process()
    process.executableURL = tool
    process.arguments = ["watch", "unix:/nonexistent/relink-test", "--json"]
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    // The first line says that it listens for the device, and for the interrupt.
    var seen = Data()
    while !seen.contains(Data("connecting".utf8)) {
      let more = output.fileHandleForReading.availableData
      if more.isEmpty { break }
      seen += more
    }
    process.interrupt()
    process.waitUntilExit()
    #expect(process.terminationReason == .exit)
    #expect(process.terminationStatus == 0)
  }
}

extension Data {
  fileprivate func contains(_ other: Data) -> Bool { range(of: other) != nil }
}
