internal import BluetoothWire
internal import Relink

/// A command line that cannot be understood.
struct UsageError: Error, Equatable {
  var message: String
}

/// The words of a command line, taken one by one.
struct Arguments {
  private var words: [String]

  init(_ words: some Sequence<String>) {
    self.words = Array(words)
  }

  /// The next word; nil at the end.
  mutating func next() -> String? {
    words.isEmpty ? nil : words.removeFirst()
  }

  /// The value of an option.
  mutating func value(of option: String) throws(UsageError) -> String {
    guard let word = next() else { throw UsageError(message: "\(option) needs a value") }
    return word
  }
}

extension Characteristic {
  /// Reads `UUID` or `SERVICE/UUID`.
  init(argument text: String) throws(UsageError) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false).map { BluetoothUUID(String($0)) }
    switch (parts.count, parts.first ?? nil, parts.last ?? nil) {
    case (1, let uuid?, _): self.init(uuid)
    case (2, let service?, let uuid?): self.init(uuid, in: service)
    default: throw UsageError(message: "\(text) is not a UUID of 4 or 32 hexadecimal digits")
    }
  }
}

extension Duration {
  /// Reads `500ms`, `1s`, `2m` or `1h`; more than zero, at most a day.
  init(argument text: String) throws(UsageError) {
    let number = text.prefix { $0.isASCII && $0.isNumber }
    let units: [Substring: Int64] = ["ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000]
    guard let count = Int64(number), let unit = units[text.dropFirst(number.count)], count > 0,
      count <= 86_400_000 / unit
    else { throw UsageError(message: "\(text) is not a time like 500ms, 1s or 2m, up to 24h") }
    self = .milliseconds(count * unit)
  }
}
