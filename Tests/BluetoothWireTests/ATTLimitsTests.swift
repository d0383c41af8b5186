import BluetoothWire
import Testing

@Suite struct ATTLimitsTests {
  @Test(arguments: [23, 24, 64, 185, 247, 517])
  func theLongestFitsTheMTUAndOneMoreDoesNot(mtu: Int) {
    func value(_ count: Int) -> [UInt8] { [UInt8](repeating: 1, count: count) }
    let signature = ATTSignature(value(12))!
    let kinds: [(longest: Int, pdu: (Int) -> ATTPDU)] = [
      (ATTLimits.maximumReadLength(mtu: mtu), { .readResponse(value: value($0)) }),
      (ATTLimits.maximumWriteLength(mtu: mtu), { .writeRequest(handle: 1, value: value($0)) }),
      (ATTLimits.maximumWriteLength(mtu: mtu), { .handleValueNotification(handle: 1, value: value($0)) }),
      (
        ATTLimits.maximumSignedWriteLength(mtu: mtu),
        { .signedWriteCommand(handle: 1, value: value($0), signature: signature) }
      ),
      (
        ATTLimits.maximumPrepareLength(mtu: mtu),
        { .prepareWriteRequest(handle: 1, offset: 0, value: value($0)) }
      ),
      (
        ATTLimits.maximumFindByTypeValueLength(mtu: mtu),
        { .findByTypeValueRequest(start: 1, end: 2, type: 3, value: value($0)) }
      ),
    ]
    for (longest, pdu) in kinds {
      #expect(pdu(longest).encoded().count == mtu, "\(pdu(0))")
    }
  }

  @Test(arguments: [23, 24, 64, 185, 247, 517])
  func theMostItemsFitTheMTUAndOneMoreDoesNot(mtu: Int) {
    let octet: [UInt8] = [1, 2]
    let kinds: [(most: Int, pdu: (Int) -> ATTPDU)] = [
      (
        ATTLimits.maximumFindInformationItems(mtu: mtu, uuidLength: 2),
        { .findInformationResponse(Array(repeating: ATTHandleUUID(handle: 1, uuid: .battery), count: $0)) }
      ),
      (
        ATTLimits.maximumFindInformationItems(mtu: mtu, uuidLength: 16),
        {
          .findInformationResponse(
            Array(repeating: ATTHandleUUID(handle: 1, uuid: BluetoothUUID(1, 2)), count: $0))
        }
      ),
      (
        ATTLimits.maximumFindByTypeValueItems(mtu: mtu),
        { .findByTypeValueResponse(Array(repeating: ATTHandleRange(start: 1, end: 2), count: $0)) }
      ),
      (
        ATTLimits.maximumReadByTypeItems(mtu: mtu, valueLength: 2),
        { .readByTypeResponse(Array(repeating: ATTHandleValue(handle: 1, value: octet), count: $0)) }
      ),
      (
        ATTLimits.maximumReadByGroupTypeItems(mtu: mtu, valueLength: 2),
        {
          .readByGroupTypeResponse(Array(repeating: ATTGroupValue(start: 1, end: 2, value: octet), count: $0))
        }
      ),
      (
        ATTLimits.maximumReadMultipleHandles(mtu: mtu),
        { .readMultipleRequest(handles: Array(repeating: 1, count: $0)) }
      ),
    ]
    for (most, pdu) in kinds {
      #expect(pdu(most).encoded().count <= mtu, "\(pdu(1))")
      #expect(pdu(most + 1).encoded().count > mtu, "\(pdu(1))")
    }
  }

  @Test func anItemNeverNeedsMoreThanItsLengthOctetSays() {
    #expect(ATTLimits.maximumReadByTypeValueLength(mtu: 23) == 19)
    #expect(ATTLimits.maximumReadByTypeValueLength(mtu: 517) == 253)
    #expect(ATTLimits.maximumReadByGroupTypeValueLength(mtu: 23) == 17)
    #expect(ATTLimits.maximumReadByGroupTypeValueLength(mtu: 517) == 251)
  }

  @Test func nothingFitsNoMTU() {
    #expect(ATTLimits.maximumReadLength(mtu: 0) == 0)
    #expect(ATTLimits.maximumWriteLength(mtu: 2) == 0)
    #expect(ATTLimits.maximumSignedWriteLength(mtu: 14) == 0)
    #expect(ATTLimits.maximumPrepareLength(mtu: 4) == 0)
    #expect(ATTLimits.maximumReadByTypeValueLength(mtu: 1) == 0)
    #expect(ATTLimits.maximumReadByGroupTypeValueLength(mtu: 1) == 0)
    #expect(ATTLimits.maximumFindByTypeValueLength(mtu: 1) == 0)
    #expect(ATTLimits.maximumFindInformationItems(mtu: 1, uuidLength: 2) == 0)
    #expect(ATTLimits.maximumFindByTypeValueItems(mtu: 0) == 0)
    #expect(ATTLimits.maximumReadByTypeItems(mtu: 1, valueLength: 0) == 0)
    #expect(ATTLimits.maximumReadByGroupTypeItems(mtu: 1, valueLength: 0) == 0)
    #expect(ATTLimits.maximumReadMultipleHandles(mtu: 0) == 0)
  }

  @Test func theNumbersOfTheSpecification() {
    #expect(ATTLimits.defaultMTU == 23)
    #expect(ATTLimits.maximumAttributeLength == 512)
    #expect(ATTLimits.transactionTimeout == 30)
  }
}
