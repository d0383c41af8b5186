internal import Foundation
internal import Relink

/// Prints what `watch` sees, a line each, with the time of day in UTC.
struct WatchLog: Sendable {
  var isJSON: Bool
  /// The clock of the transport that is watched.
  var executor: any SessionExecutor

  func print(_ event: ConnectionEvent) {
    write(EventLine(event))
  }

  func print(_ action: String, _ name: Characteristic, _ value: [UInt8]) {
    write(
      EventLine(
        name: action, text: "\(name) = \(value.hex)",
        fields: [("characteristic", .text("\(name)")), ("value", .text(value.hex))]))
  }

  func print(_ action: String, _ name: Characteristic, _ error: RelinkError) {
    write(
      EventLine(
        name: "failed", text: "\(action) \(name): \(error.message)",
        fields: [
          ("action", .text(action)), ("characteristic", .text("\(name)")), ("code", .text("\(error.code)")),
          ("message", .text(error.message)),
        ]))
  }

  func print(_ error: RelinkError) {
    write(
      EventLine(
        name: "failed", text: error.message,
        fields: [
          ("action", .text("connect")), ("code", .text("\(error.code)")), ("message", .text(error.message)),
        ]))
  }

  func print(_ name: Characteristic, _ update: ValueUpdate) {
    let gap = update.gap
    let note = gap.map { $0.isAfterLoss ? "   (after a loss)" : "   (\($0.dropped) dropped)" } ?? ""
    write(
      EventLine(
        name: "value", text: "\(name) = \(update.value.hex)\(note)",
        fields: [
          ("characteristic", .text("\(name)")), ("value", .text(update.value.hex)),
          ("generation", .number(Int(update.generation.rawValue))),
          ("afterLoss", .flag(gap?.isAfterLoss ?? false)), ("dropped", .number(gap?.dropped ?? 0)),
        ]))
  }

  private func write(_ line: EventLine) {
    let now = Date(timeIntervalSince1970: Double(executor.timestamp().wall) / 1e9)
    let text: String
    if isJSON {
      text = line.json(time: now.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true)))
    } else {
      let time = now.formatted(.iso8601.time(includingFractionalSeconds: true))
      text = "\(time)  \(line.name.padding(toLength: 14, withPad: " ", startingAt: 0))\(line.text)"
    }
    // Not `print`: a line is out as soon as it is complete, into a pipe too.
    FileHandle.standardOutput.write(Data((text + "\n").utf8))
  }
}

extension [UInt8] {
  /// The bytes in hexadecimal.
  var hex: String {
    map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
  }
}
