internal import BluetoothWire
internal import Relink

/// A source of codes that the diagnosis reads.
enum CodeSource: String, CaseIterable, Hashable, Sendable {
  case hci
  case encryption
  case mgmt
  case pairing
  case att
  case connect
  case socket

  /// What the codes are, in a line.
  var title: String {
    switch self {
    case .hci: "the controller's reasons: why a connection was not made or ended"
    case .encryption: "the controller's word on switching encryption on"
    case .mgmt: "the kernel's reasons in Device Disconnected"
    case .pairing: "the kernel's status of a pairing"
    case .att: "the device's answer to a request without which the session cannot become ready"
    case .connect: "error numbers of Linux from a connect"
    case .socket: "error numbers of Linux from a socket that was connected"
    }
  }

  /// The meaning of every code that the source can give, in their order.
  func readings(in table: DiagnosisTable = .standard) -> [CodeReading] {
    let numbers: ClosedRange<UInt8> =
      switch self {
      case .hci, .encryption, .mgmt, .pairing, .att: 0...255
      case .connect, .socket: 0...LinuxError.last
      }
    var readings = numbers.map { number in
      CodeReading(source: self, number: number, name: name(of: number), key: key(of: number), in: table)
    }
    if self == .socket {
      readings.append(
        CodeReading(source: self, number: nil, name: "end of file", key: .endOfFile, in: table))
    }
    return readings
  }

  private func key(of number: UInt8) -> DiagnosisTable.Key {
    switch self {
    case .hci: .hci(HCIErrorCode(rawValue: number))
    case .encryption: .encryption(HCIErrorCode(rawValue: number))
    case .mgmt: .management(number)
    case .pairing: .pairing(number)
    case .att: .att(ATTErrorCode(rawValue: number))
    case .connect: .dial(Int32(number))
    case .socket: .socket(Int32(number))
    }
  }

  private func name(of number: UInt8) -> String {
    switch self {
    case .hci, .encryption: Self.words(HCIErrorCode(rawValue: number))
    case .mgmt: Self.words(ManagementDisconnectReason(rawValue: number))
    case .pairing: Self.words(ManagementStatus(rawValue: number))
    case .att: Self.words(ATTErrorCode(rawValue: number))
    case .connect, .socket: LinuxError.name(of: number) ?? "no name"
    }
  }

  /// The description of a code without the number at its end.
  private static func words(_ code: some CustomStringConvertible) -> String {
    let text = code.description
    guard text.hasSuffix(")"), let bracket = text.lastIndex(of: "(") else { return text }
    return String(text[..<bracket].dropLast())
  }

  /// A number as the source's own documents write it.
  func spelled(_ number: UInt8) -> String {
    switch self {
    case .hci, .encryption, .mgmt, .pairing, .att:
      "0x" + (number < 16 ? "0" : "") + String(number, radix: 16, uppercase: true)
    case .connect, .socket: "\(number)"
    }
  }
}

/// What one code means by itself, at every moment.
struct CodeReading {
  var source: CodeSource
  /// Nil for what has no number.
  var number: UInt8?
  var name: String
  /// One row for each moment.
  var rows: [(moment: LinkMoment, row: DiagnosisTable.Row)]

  init(
    source: CodeSource, number: UInt8?, name: String, key: DiagnosisTable.Key, in table: DiagnosisTable
  ) {
    self.source = source
    self.number = number
    self.name = name
    rows = LinkMoment.allCases.map { ($0, table.row(for: key, at: $0)) }
  }

  /// The code as it is written.
  var code: String { number.map(source.spelled) ?? "EOF" }

  /// The rows that differ, each with when it holds.
  var parts: [(when: String, row: DiagnosisTable.Row)] {
    var parts: [(moments: [LinkMoment], row: DiagnosisTable.Row)] = []
    for (moment, row) in rows {
      if let index = parts.firstIndex(where: { $0.row == row }) {
        parts[index].moments.append(moment)
      } else {
        parts.append(([moment], row))
      }
    }
    return parts.map { (LinkMoment.words($0.moments), $0.row) }
  }
}

extension LinkMoment {
  /// These moments in words.
  static func words(_ moments: some Collection<LinkMoment>) -> String {
    moments.count == allCases.count ? "always" : moments.map(\.rawValue).joined(separator: ", ")
  }
}
