import Relink
import Testing

@testable import RelinkSQLite

@Suite("Audit chain")
struct AuditVerifierTests {
  @Test("A log as it was written holds")
  func whole() throws {
    let log = SampleLog()
    let summary = try verdict(log.bytes).get()
    #expect(summary.records == 4)
    #expect(summary.head == log.chain.head)
    #expect(summary.opened == 1 && summary.closed == 0 && summary.lost == 0 && summary.tornBytes == 0)
    #expect(try verdict(log.bytes, records: 4, head: log.chain.head).get() == summary)
  }

  @Test("The pieces in which a file is read change nothing", arguments: [1, 7, 64, 1000])
  func pieces(size: Int) throws {
    let log = SampleLog()
    var verifier = AuditVerifier()
    var rest = log.bytes[...]
    while !rest.isEmpty {
      try verifier.take(rest.prefix(size))
      rest = rest.dropFirst(size)
    }
    #expect(try verifier.finish() == verdict(log.bytes).get())
  }

  /// The newline, a printable neighbour, the other case of a letter, a byte that is no UTF-8, and zero.
  @Test(
    "Every edit of one byte is found, on the line where it is or the next", arguments: [0x01, 0x20, 0x80])
  func edits(mask: UInt8) {
    let log = SampleLog(transitions: 1)
    var line: UInt64 = 1
    for position in log.bytes.indices {
      for value in [log.bytes[position] ^ mask, 10, 0] where value != log.bytes[position] {
        var edited = log.bytes
        edited[position] = value
        let flaw = verdict(edited).flaw
        #expect(flaw != nil, "byte \(position) as \(value)")
        #expect(flaw.map { $0.line == line } ?? false, "byte \(position) as \(value): \(flaw?.line ?? 0)")
      }
      if log.bytes[position] == 10 { line += 1 }
    }
  }

  @Test("Every line that is taken out is missed, the last one by what was kept")
  func removals() {
    let log = SampleLog()
    for removed in log.lines.indices {
      var lines = log.lines
      lines.remove(at: removed)
      let bytes = Array(lines.joined())
      let isLast = removed == log.lines.count - 1
      #expect((verdict(bytes).flaw == nil) == isLast, "line \(removed + 1)")
      #expect(verdict(bytes, head: log.chain.head).flaw != nil)
      #expect(verdict(bytes, records: 4).flaw != nil)
      if !isLast {
        #expect(verdict(bytes).flaw?.message == "record \(removed + 1) is missing before this line")
      }
    }
  }

  @Test("Every line that is doubled, moved or slipped in is found")
  func rearrangements() {
    let log = SampleLog()
    let lines = log.lines
    for from in lines.indices {
      for to in 0...lines.count {
        var doubled = lines
        doubled.insert(lines[from], at: to)
        #expect(verdict(Array(doubled.joined())).flaw != nil, "line \(from + 1) again at \(to + 1)")
        for foreign in [[10], Array("{}\n".utf8), [0xFF, 0, 10]] {
          doubled[to] = foreign
          #expect(verdict(Array(doubled.joined())).flaw?.line == UInt64(to + 1))
        }
      }
      for other in lines.indices where other != from {
        var swapped = lines
        swapped.swapAt(from, other)
        #expect(
          verdict(Array(swapped.joined())).flaw != nil, "lines \(from + 1) and \(other + 1) changed places")
      }
    }
  }

  @Test("A line of another log with the same number is found")
  func foreignLine() {
    let log = SampleLog()
    var other = SampleLog(transitions: 0)
    for number in 0..<3 { other.append(.sample(.recorded, id: "other-\(number)")) }
    var lines = log.lines
    lines[2] = other.lines[2]
    let flaw = verdict(Array(lines.joined())).flaw
    #expect(flaw?.line == 3)
    #expect(flaw?.message.hasPrefix("this record does not continue the one before it") == true)
  }

  @Test("A log that was edited and hashed anew from there on is another one than was kept")
  func rewritten() {
    let log = SampleLog()
    var other = SampleLog(transitions: 0)
    for number in 0..<3 { other.append(.sample(.recorded, id: "other-\(number)")) }
    // The chain alone cannot show it.
    #expect(verdict(other.bytes).flaw == nil)
    #expect(verdict(other.bytes, head: log.chain.head).flaw?.line == 5)
    #expect(verdict(other.bytes, records: 4, head: log.chain.head).flaw?.line == 4)
  }

  @Test("A cut at any byte is found by what was kept, and without it unless it is between two lines")
  func cuts() {
    let log = SampleLog(transitions: 2)
    for length in 0..<log.bytes.count {
      let cut = Array(log.bytes[..<length])
      #expect(verdict(cut, head: log.chain.head).flaw != nil, "\(length) bytes")
      #expect(verdict(cut, records: 3).flaw != nil, "\(length) bytes")
      #expect((verdict(cut).flaw == nil) == (cut.last == 10), "\(length) bytes")
      // While it is being written the end may be on its way.
      #expect((verdict(cut, isBeingWritten: true).flaw == nil) == cut.contains(10), "\(length) bytes")
    }
  }

  @Test("A head that was kept still holds when the log has grown")
  func grown() throws {
    var log = SampleLog()
    let kept = log.chain
    log.append(.sample(.delivered))
    #expect(verdict(log.bytes, records: kept.records, head: kept.head).flaw == nil)
    #expect(verdict(log.bytes, records: kept.records + 1, head: kept.head).flaw != nil)
  }

  @Test("Any bytes get a verdict", arguments: 0..<300)
  func anything(seed: Int) {
    var state = UInt64(seed) &* 0x9E37_79B9_7F4A_7C15 &+ 1
    func draw(_ bound: Int) -> Int {
      state ^= state << 13
      state ^= state >> 7
      state ^= state << 17
      return Int(state % UInt64(bound))
    }
    let log = SampleLog(transitions: 1)
    var bytes = seed % 3 == 0 ? (0..<draw(400)).map { _ in UInt8(draw(256)) } : log.bytes
    for _ in 0..<draw(6) where !bytes.isEmpty {
      let from = draw(bytes.count)
      let piece = Array(bytes[from..<min(from + draw(90), bytes.count)])
      if draw(2) == 0 { bytes.removeSubrange(from..<from + piece.count) }
      bytes.insert(contentsOf: piece, at: draw(bytes.count + 1))
    }
    #expect((verdict(bytes).flaw == nil) == (bytes == log.bytes || bytes == log.lines[0]))
  }

  @Test("A line that never ends is given up in bounded memory")
  func endlessLine() {
    let log = SampleLog()
    for filler in [UInt8(ascii: "x"), 0] {
      let endless = log.bytes + [UInt8](repeating: filler, count: 3 << 19)
      #expect(verdict(endless).flaw?.message == "this line is longer than a record can be")
      #expect(verdict(endless).flaw?.line == 5)
    }
  }

  @Test("A hash that fits something of another form helps nobody")
  func form() {
    for text in [
      "{", "{}", #"{"sequence":1"#, #"{"sequence":1,"previous":"x","record":"opened","record":"closed""#,
      #"{"sequence":-1,"previous":"","record":"opened""#, #"{"sequence":"1","previous":"","record":"opened""#,
      #"{"sequence":1,"previous":"","record":"opened","a":[]"#,
      #"{"sequence":1,"previous":"","record":"opened","a":"\q""#,
      #"{"sequence":1,"previous":"","record":"opened","a":"\ud800""#,
      #"{"sequence":1,"previous":"","record":"opened","a":1e5"#,
      #"{"sequence":99999999999999999999,"previous":"","record":"opened""#,
    ] {
      let hash = SHA256.digest(of: text.utf8).hexadecimal
      let flaw = verdict(Array("\(text),\"hash\":\"\(hash)\"}\n".utf8)).flaw
      #expect(flaw?.message == "this line has a hash that fits, but not the form of a record", "\(text)")
    }
  }

  @Test("A log of a later form says so")
  func laterForm() {
    var log = SampleLog(transitions: 0)
    log.append(AuditRecord(.opened, [AuditField("format", 2)]))
    #expect(verdict(log.bytes).flaw?.message.contains("later version") == true)
  }
}
