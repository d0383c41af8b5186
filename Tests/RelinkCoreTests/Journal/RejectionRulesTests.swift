import BluetoothWire
import Testing

@testable import RelinkCore

@Suite struct RejectionRulesTests {
  /// Core Specification Vol 3 Part F 3.4.1.1, written out apart from the code under test.
  private static let checkedBeforeActing: Set<UInt8> = [
    0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x0F, 0x10, 0x12, 0x13,
  ]

  @Test func onlyChecksBeforeTheActProveThatAWriteWasNotApplied() {
    for code in UInt8.min...UInt8.max {
      let proof = RejectionRules.standard.provesNotApplied(ATTErrorCode(rawValue: code))
      #expect(proof == Self.checkedBeforeActing.contains(code), "\(code)")
    }
  }

  @Test func anExecutedQueueIsProvenNotAppliedByTwoCodesOnly() {
    let proving = (UInt8.min...UInt8.max).filter {
      RejectionRules.standard.provesNotExecuted(ATTErrorCode(rawValue: $0))
    }
    #expect(proving == [0x07, 0x0D])
  }
}
