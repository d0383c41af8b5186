import Relink
import Testing

@testable import RelinkSQLite

@Suite("End of an audit log")
struct AuditEndingTests {
  /// What a log makes of a file that it opens: the file, the repair, and one more record.
  private func reopened(_ bytes: [UInt8]) throws(AuditLogError) -> (log: SampleLog, torn: Int) {
    var ending = try AuditEnding(bytes, isWhole: true, path: "file")
    var log = SampleLog(transitions: 0)
    let torn = ending.torn.count
    log.bytes = bytes + ending.repair()
    log.chain = ending.chain
    log.append(AuditRecord(.closed))
    return (log, torn)
  }

  @Test("A log that was cut off anywhere is continued, and every byte of it stays and is accounted for")
  func cutAnywhere() throws {
    let log = SampleLog(transitions: 2)
    for length in 0...log.bytes.count {
      let cut = Array(log.bytes[..<length])
      let (continued, torn) = try reopened(cut)
      #expect(continued.bytes.starts(with: cut))
      let summary = try verdict(continued.bytes).get()
      let isWholeRecord = length == log.bytes.count || log.bytes[length] == 10
      // The newline that ends the torn line is counted with it.
      #expect(summary.tornBytes == (torn == 0 ? 0 : UInt64(torn) + 1), "\(length) bytes")
      #expect((torn == 0) == (isWholeRecord || cut.isEmpty || cut.last == 10), "\(length) bytes")
      #expect(summary.head == continued.chain.head)
    }
  }

  @Test("A repair that is cut off anywhere is repaired in its turn")
  func cutInRepair() throws {
    let log = SampleLog(transitions: 1)
    let cut = Array(log.bytes.dropLast(9))
    let first = try reopened(cut).log.bytes
    for length in cut.count...first.count {
      let again = try reopened(Array(first[..<length])).log
      #expect(verdict(again.bytes).flaw == nil, "\(length) bytes")
      #expect(again.bytes.starts(with: first[..<length]))
    }
  }

  @Test("Torn bytes cannot be edited, taken away or added once they are accounted for")
  func tornBytesAreCovered() throws {
    let log = SampleLog(transitions: 1)
    let cut = Array(log.bytes.dropLast(30))
    let (continued, torn) = try reopened(cut)
    let start = cut.count - torn
    for position in start...cut.count {
      var edited = continued.bytes
      edited[position] ^= 0x01
      #expect(verdict(edited).flaw != nil, "byte \(position)")
      edited = continued.bytes
      edited.remove(at: position)
      #expect(verdict(edited).flaw != nil, "without byte \(position)")
      edited = continued.bytes
      edited.insert(UInt8(ascii: "x"), at: position)
      #expect(verdict(edited).flaw != nil, "one more before \(position)")
    }
    var without = continued.bytes
    without.removeSubrange(start...cut.count)
    #expect(
      verdict(without).flaw?.message.hasPrefix("this record accounts for torn bytes that are not there")
        == true)
  }

  @Test("An end of zeros, as a loss of power leaves it, is torn")
  func zeros() throws {
    let log = SampleLog()
    let continued = try reopened(log.bytes + [UInt8](repeating: 0, count: 100_000)).log
    #expect(try verdict(continued.bytes).get().tornBytes == 100_001)
  }

  @Test("What is no audit log, or was edited, is not continued")
  func refused() throws {
    let log = SampleLog()
    var edited = log.bytes
    edited[edited.count - 200] ^= 0x01
    var lastHash = log.bytes
    lastHash[lastHash.count - 10] ^= 0x01
    let foreign: [[UInt8]] = [
      Array("Dear diary,\n".utf8), Array("{}".utf8), [0], [10], [UInt8](repeating: 0, count: 1000), edited,
      lastHash,
      log.bytes + [UInt8](repeating: 0, count: 1 << 20),
    ]
    for bytes in foreign {
      let error = #expect(throws: AuditLogError.self) {
        try AuditEnding(Array(bytes.suffix(AuditEnding.reach)), isWhole: true, path: "file")
      }
      #expect(error?.code == .corrupt)
    }
  }

  @Test("The end of a long log is enough to continue it")
  func endOnly() throws {
    let log = SampleLog(transitions: 5)
    let end = Array(log.bytes.suffix(1500))
    #expect(try AuditEnding(end, isWhole: false, path: "file").chain == log.chain)
    #expect(throws: AuditLogError.self) {
      try AuditEnding([UInt8](repeating: 1, count: 10), isWhole: false, path: "file")
    }
  }
}
