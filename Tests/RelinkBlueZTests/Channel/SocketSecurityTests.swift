import Relink
import Testing

@testable import RelinkBlueZ

struct SocketSecurityTests {
  /// Each level as the kernel numbers it, with the longest key.
  @Test(arguments: [
    (UInt8(0), SecurityLevel.none), (1, .none), (2, .encrypted), (3, .authenticated), (4, .secureConnections),
    (5, .none), (255, .none),
  ])
  func theKernelsLevelIsRead(_ kernel: UInt8, _ level: SecurityLevel) {
    #expect(SecurityLevel(kernelLevel: kernel, keySize: 16) == level)
  }

  /// Only the highest level asks for a key of 128 bits.
  @Test(arguments: [UInt8(0), 7, 15]) func aShortKeyIsNoSecureConnection(_ keySize: UInt8) {
    #expect(SecurityLevel(kernelLevel: 4, keySize: keySize) == .authenticated)
    #expect(SecurityLevel(kernelLevel: 3, keySize: keySize) == .authenticated)
    #expect(SecurityLevel(kernelLevel: 2, keySize: keySize) == .encrypted)
  }
}
