import BluetoothWire
import Glibc
import Relink
import Testing

@testable import RelinkBlueZ

struct BondBookTests {
  private static let adapter = BluetoothAddress(0x00_1A_7D_00_00_01)
  private static let spare = BluetoothAddress(0x00_1A_7D_00_00_02)

  private static func device(_ text: String) throws -> DeviceID { try #require(DeviceID(text)) }

  private static func bond(_ device: DeviceID, _ id: UInt64 = 0, of adapter: BluetoothAddress = adapter)
    throws
    -> Bond
  {
    let value = try #require(SecurityKey([UInt8](repeating: UInt8(id), count: 16)))
    return Bond(
      with: device, of: adapter, id: id,
      longTermKeys: [Bond.LongTermKey(value, isAuthenticated: false, isSecureConnections: true)],
      identityKey: value)
  }

  @Test func untilTheStoreWasReadNothingIsKnown() throws {
    let device = try Self.device("C0:DE:00:00:00:01/random")
    var book = BondBook(isKept: true)
    #expect(book.knowledge(of: device, adapter: nil) == .unknown)
    book.loaded(KeptBonds([try Self.bond(device, 3)], lastID: 7))
    #expect(
      book.knowledge(of: device, adapter: nil)
        == .bonded(BondRecord(device: device, id: 3, level: .encrypted, keySize: 16)))
    #expect(book.knowledge(of: device, adapter: Self.spare) == .none)
  }

  @Test func aStoreThatCannotBeReadMayHaveMore() throws {
    let device = try Self.device("C0:DE:00:00:00:01/random")
    var book = BondBook(isKept: true)
    book.loaded(nil)
    #expect(book.knowledge(of: device, adapter: nil) == .unknown)
    #expect(BondBook(isKept: false).knowledge(of: device, adapter: nil) == .unknown)
  }

  @Test func aNewPairingHasANewNumberEvenAfterARemoval() throws {
    let device = try Self.device("C0:DE:00:00:00:01/random")
    var book = BondBook(isKept: true)
    book.loaded(KeptBonds([try Self.bond(device, 3)], lastID: 7))
    #expect(book.made(try Self.bond(device)).id == 8)
    #expect(book.removed(device, of: nil).map(\.id) == [8])
    #expect(book.made(try Self.bond(device)).id == 9)
    #expect(book.all.count == 1)
  }

  @Test func whatWasMadeWhileTheStoreWasReadIsNewer() throws {
    let device = try Self.device("C0:DE:00:00:00:01/random")
    var book = BondBook(isKept: true)
    _ = book.made(try Self.bond(device))
    book.loaded(KeptBonds([try Self.bond(device, 5)], lastID: 5))
    #expect(book.all.count == 1)
    #expect(book.all.first?.id == 1)
    #expect(book.made(try Self.bond(device)).id == 6)
  }

  /// The kernel refuses a whole list for one address that is no identity.
  @Test func theKernelGetsTheKeysOfAnAdapterUnderIdentitiesAlone() throws {
    let devices = try ["C0:DE:00:00:00:01/random", "00:1A:7D:00:00:09/public", "40:DE:00:00:00:03/random"]
      .map(Self.device)
    var book = BondBook(isKept: true)
    book.loaded(KeptBonds(try devices.enumerated().map { try Self.bond($1, UInt64($0 + 1)) }, lastID: 3))
    _ = book.made(try Self.bond(devices[0], of: Self.spare))
    let keys = book.keys(of: Self.adapter)
    #expect(keys.longTerm.map(\.device.address) == devices.prefix(2).compactMap(\.address))
    #expect(keys.identity.map(\.device.type) == [.leRandom, .lePublic])
    #expect(
      book.keys(of: Self.adapter, without: devices[0]).longTerm.map(\.device.address.value) == [
        0x00_1A_7D_00_00_09
      ])
  }

  @Test func aKeyComesBackAsItWas() throws {
    let name = ManagementAddress(BluetoothAddress(0xC0_DE_00_00_00_01), .leRandom)
    for type in 0...3 as ClosedRange<UInt8> {
      let key = ManagementLongTermKey(
        device: name, type: ManagementLongTermKeyType(rawValue: type), isCentral: type < 2, encryptionSize: 7,
        encryptedDiversifier: 0xABCD, randomNumber: 0x0123_4567_89AB_CDEF,
        value: try #require(SecurityKey(Array(0..<16))))
      let kept = try #require(Bond.LongTermKey(key))
      #expect(ManagementLongTermKey(kept, of: name) == key)
    }
    let debug = ManagementLongTermKey(
      device: name, type: .debugP256, isCentral: true, encryptionSize: 16, encryptedDiversifier: 0,
      randomNumber: 0, value: try #require(SecurityKey(Array(0..<16))))
    #expect(Bond.LongTermKey(debug) == nil)
  }

  // MARK: bluetoothd's

  @Test func theLevelOfADaemonsBondIsRead() {
    let text = """
      [General]
      Name=Pump
      [IdentityResolvingKey]
      Key=00112233445566778899AABBCCDDEEFF
      [LongTermKey]
      Key=00112233445566778899AABBCCDDEEFF
      Authenticated=%
      EncSize=16
      EDiv=0
      Rand=0
      """
    func reading(_ type: Int) -> BondReading {
      DaemonBonds.reading(of: text.split(separator: "%").joined(separator: "\(type)"))
    }
    #expect(reading(0) == .kept(.encrypted, isElsewhere: true))
    #expect(reading(1) == .kept(.authenticated, isElsewhere: true))
    #expect(reading(2) == .kept(.encrypted, isElsewhere: true))
    #expect(reading(3) == .kept(.secureConnections, isElsewhere: true))
    #expect(DaemonBonds.reading(of: "[IdentityResolvingKey]\nKey=00\n[LongTermKey") == .missing)
    #expect(DaemonBonds.reading(of: "") == .missing)
  }

  @Test func aDaemonsFileIsFoundByItsTwoAddresses() throws {
    var template = Array("/tmp/relink-daemon-XXXXXX".utf8CString)
    let folder = String(cString: try #require(mkdtemp(&template)))
    defer { _ = rmdir(folder) }
    let device = BluetoothAddress(0xC0_DE_00_00_00_01)
    #expect(DaemonBonds.read(device, of: Self.adapter, in: folder) == .missing)
    let paths = ["\(folder)/\(Self.adapter)", "\(folder)/\(Self.adapter)/\(device)"]
    for path in paths { mkdir(path, 0o700) }
    let file = try #require(fopen(paths[1] + "/info", "w"))
    fputs("[LongTermKey]\nKey=00\nAuthenticated=2\n", file)
    fclose(file)
    #expect(DaemonBonds.read(device, of: Self.adapter, in: folder) == .kept(.encrypted, isElsewhere: true))
    unlink(paths[1] + "/info")
    // Something that is there and cannot be read as a file.
    mkdir(paths[1] + "/info", 0o700)
    #expect(DaemonBonds.read(device, of: Self.adapter, in: folder) == .unreadable)
    for path in [paths[1] + "/info"] + paths.reversed() { rmdir(path) }
  }
}
