import CSQLite
import Relink
import Testing

/// A program that reads the journal and takes its time.
final class HeldReader {
  private var connection: OpaquePointer?

  init(_ path: String) throws {
    try #require(sqlite3_open_v2(path, &connection, SQLITE_OPEN_READONLY, nil) == SQLITE_OK)
    try #require(sqlite3_exec(connection, "BEGIN; SELECT * FROM operations", nil, nil, nil) == SQLITE_OK)
  }

  func end() {
    sqlite3_close_v2(connection)
    connection = nil
  }
}

/// A generator of random numbers that gives the same ones for the same seed.
struct Seeded: RandomNumberGenerator {
  private var state: UInt64

  init(_ seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}
