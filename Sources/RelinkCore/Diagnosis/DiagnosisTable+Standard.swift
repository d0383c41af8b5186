internal import BluetoothWire

// The rows of the standard table. Codes that are not listed are unknown, and keep their number in the evidence.
extension DiagnosisTable {
  /// What a code means at a moment, before anybody changed it.
  static func standardRow(for key: Key, at moment: LinkMoment) -> Row {
    switch key {
    case .hci(let code): controllerRow(code.rawValue, at: moment)
    case .encryption(let code): encryptionRow(code.rawValue, at: moment)
    case .management(let reason): managementRow(reason, at: moment)
    case .pairing(let status): pairingRow(status)
    case .dial(let number): dialRow(number)
    case .socket(let number): socketRow(number)
    case .att(let code): attributeRow(code.rawValue)
    case .endOfFile:
      Row(.remoteUserTerminated, .retryConnection, .low, "The socket ended without an error.")
    }
  }

  // MARK: HCI (Core Specification Vol 1 Part F)

  private static func controllerRow(_ code: UInt8, at moment: LinkMoment) -> Row {
    // The controller gives the same code to a command that it refuses and to a link that ends.
    if moment == .dialling, let row = controllerDialRows[code] { return row }
    return controllerRows[code] ?? unknown
  }

  private static let unknown = Row(
    .unknown, .retryConnection, .low, "No meaning is known here; the number is in the evidence.")

  private static let controllerDialRows: [UInt8: Row] = [
    0x02: Row(.failedToEstablish, .retryConnection, .high, "The dial was over before it was called off."),
    0x13: Row(.refused, .retryConnection, .high),
    0x3C: Row(.notFound, .retryConnection, .high),
  ]

  private static let controllerRows: [UInt8: Row] = {
    var rows: [UInt8: Row] = [
      0x03: Row(.adapterStuck, .retryConnection, .medium, "The controller reports a fault of its hardware."),
      0x04: Row(.notFound, .retryConnection, .high),
      0x05: Row(
        .authenticationFailure, .retryConnection, .low,
        "Says something about keys only with a bond, or where encryption was asked for."),
      0x06: Row(
        .keyMissing, .retryConnection, .low,
        "Says something about keys only with a bond, or where encryption was asked for."),
      0x08: Row(.supervisionTimeout, .retryConnection, .high, "Out of range, switched off, or disturbed."),
      0x09: Row(.outOfSlots, .retryConnection, .high, "The controller has no room for one more link."),
      0x0A: Row(.outOfSlots, .retryConnection, .high),
      0x0B: Row(.channelInUse, .retryConnection, .high, "The controller has a link to the device already."),
      0x0C: Row(.busy, .retryConnection, .medium, "The controller does something that forbids it now."),
      0x0D: Row(.remoteLowResources, .retryConnection, .high),
      0x0E: Row(.refused, .retryConnection, .high, "The device refuses for reasons of security."),
      0x0F: Row(.refused, .retryConnection, .high, "The device does not take links from this address."),
      0x10: Row(.notFound, .retryConnection, .medium),
      0x13: Row(.remoteUserTerminated, .retryConnection, .high, "The device, or its user, ended the link."),
      0x14: Row(.remoteLowResources, .retryConnection, .high),
      0x15: Row(.remotePowerOff, .retryConnection, .high, "It comes back when the device is switched on."),
      0x16: Row(
        .localHostTerminated, .retryConnection, .high, "This host ended the link, unasked by the session."),
      0x17: Row(.pairingFailed, .retryPairing, .medium, "Too many tries: wait before the next one."),
      0x18: Row(.pairingFailed, .retryPairing, .high, "The device is not in its pairing mode."),
      0x25: Row(.authenticationFailure, .retryConnection, .low),
      0x29: Row(.pairingFailed, .retryPairing, .medium),
      0x2F: Row(.authenticationFailure, .retryConnection, .low, "The security of the link does not suffice."),
      0x37: Row(.pairingFailed, .retryPairing, .medium),
      0x38: Row(.pairingFailed, .retryPairing, .medium, "The device is busy pairing."),
      0x3A: Row(.busy, .retryConnection, .medium),
      0x3B: Row(.connectionParameters, .retryConnection, .high, "Ask for other connection parameters."),
      0x3D: Row(
        .micFailure, .retryConnection, .low,
        "Right after encryption begins, again and again: the keys differ. Once, later: noise."),
      0x3E: Row(.failedToEstablish, .retryConnection, .high, "Six intervals without an answer: weak radio."),
      0x43: Row(.outOfSlots, .retryConnection, .medium),
      0x44: Row(.failedToEstablish, .retryConnection, .medium),
    ]
    let faults: [UInt8] = [
      0x02, 0x11, 0x12, 0x19, 0x1A, 0x1E, 0x1F, 0x20, 0x21, 0x22, 0x23, 0x24, 0x27, 0x28, 0x2A, 0x2D, 0x2E,
      0x30,
      0x35, 0x39, 0x3C, 0x3F, 0x40, 0x41, 0x42, 0x45,
    ]
    for code in faults {
      rows[code] = Row(
        .linkLayerFault, .retryConnection, .high, "Timing, a feature or a parameter went wrong.")
    }
    return rows
  }()

  private static func encryptionRow(_ code: UInt8, at moment: LinkMoment) -> Row {
    switch code {
    case 0x06: Row(.keyMissing, .retryConnection, .medium, "The device has no key for this host.")
    case 0x05, 0x2F, 0x25: Row(.authenticationFailure, .retryConnection, .medium)
    case 0x3D: Row(.micFailure, .retryConnection, .medium)
    default: controllerRow(code, at: moment)
    }
  }

  // MARK: The kernel's management interface

  private static func managementRow(_ reason: UInt8, at moment: LinkMoment) -> Row {
    switch reason {
    case 0: Row(.unknown, .retryConnection, .low, "Many reasons are folded into this one.")
    case 1: Row(.supervisionTimeout, .retryConnection, .medium)
    case 2: Row(.localHostTerminated, .retryConnection, .medium)
    case 3: Row(.remoteUserTerminated, .retryConnection, .medium, "HCI 0x13, 0x14 and 0x15 alike.")
    case 4:
      Row(
        .authenticationFailure, .retryConnection, .low,
        "Says something about keys only with a bond, or where encryption was asked for.")
    case 5: Row(.suspended, .waitForAdapter, .high)
    // Two paths of the kernel pass the controller's own number on.
    default: controllerRow(reason, at: moment).weakened
    }
  }

  private static func pairingRow(_ status: UInt8) -> Row {
    switch status {
    case 0x04: Row(.failedToEstablish, .retryConnection, .medium)
    case 0x05:
      Row(
        .pairingFailed, .retryPairing, .high, "The answers or the digits did not agree, or one side refused.")
    case 0x06: Row(.bondMissing, .retryPairing, .high)
    case 0x08: Row(.pairingFailed, .retryPairing, .medium, "The device did not answer in time.")
    case 0x0A: Row(.pairingFailed, .retryPairing, .medium, "Another pairing is under way.")
    case 0x0B: Row(.pairingFailed, .retryPairing, .high, "The device is not in its pairing mode, or refused.")
    case 0x0E: Row(.pairingFailed, .retryPairing, .medium, "The link was lost while it was being paired.")
    case 0x0F: Row(.adapterOff, .waitForAdapter, .high)
    case 0x10: Row(.pairingFailed, .retryPairing, .high, "It was called off.")
    case 0x11: Row(.adapterMissing, .waitForAdapter, .high)
    case 0x12: Row(.adapterBlocked, .waitForAdapter, .high)
    case 0x14: Row(.notPermitted, .waitForAdapter, .high, "Pairing needs CAP_NET_ADMIN.")
    default: Row(.pairingFailed, .retryPairing, .medium)
    }
  }

  // MARK: Linux error numbers (include/uapi/asm-generic/errno*.h); the kernel makes them from HCI reasons in
  // net/bluetooth/lib.c (bt_to_errno), several reasons to a number.

  private static func socketRow(_ number: Int32) -> Row {
    switch number {
    case 104: Row(.remoteUserTerminated, .retryConnection, .medium, "HCI 0x13, 0x14 and 0x15 alike.")
    case 32: Row(.remoteUserTerminated, .retryConnection, .low)
    case 110: Row(.supervisionTimeout, .retryConnection, .medium)
    case 103: Row(.localHostTerminated, .retryConnection, .medium)
    case 13:
      Row(
        .authenticationFailure, .retryConnection, .low,
        "Says something about keys only with a bond, or where encryption was asked for.")
    case 52:
      Row(
        .keyMissing, .retryConnection, .low,
        "Says something about keys only with a bond, or where encryption was asked for.")
    case 93, 95, 71: Row(.linkLayerFault, .retryConnection, .medium)
    case 38:
      Row(
        .linkLayerFault, .retryConnection, .low,
        "Everything that the kernel has no number for: HCI 0x1F, 0x22, 0x28, 0x2F, 0x3B, 0x3D, 0x3E, 0x3F, 0x44."
      )
    case 100, 113, 112: Row(.adapterOff, .waitForAdapter, .medium)
    case 19, 6: Row(.adapterMissing, .waitForAdapter, .medium)
    case 1: Row(.notPermitted, .waitForAdapter, .medium)
    default: unknown
    }
  }

  private static func dialRow(_ number: Int32) -> Row {
    switch number {
    case 111:
      Row(
        .refused, .retryConnection, .low, "Refused; after the time of the dial the same number means absent.")
    case 110, 112: Row(.notFound, .retryConnection, .medium)
    case 38, 107: Row(.failedToEstablish, .retryConnection, .medium, "HCI 0x3E above all.")
    case 16, 114:
      Row(.busy, .retryConnection, .medium, "The radio makes another connection, or refuses for now.")
    case 31: Row(.outOfSlots, .retryConnection, .medium, "The controller has no room for one more link.")
    case 132:
      Row(.adapterBlocked, .waitForAdapter, .high, "A switch of this machine (rfkill) forbids the radio.")
    case 113, 100, 101:
      Row(.adapterOff, .waitForAdapter, .high, "No adapter that is on has a way to the device.")
    case 19, 6, 97, 93, 99: Row(.adapterMissing, .waitForAdapter, .medium)
    case 1: Row(.notPermitted, .waitForAdapter, .high)
    default: socketRow(number)
    }
  }

  // MARK: ATT (Core Specification Vol 3 Part F 3.4.1.1)

  private static func attributeRow(_ code: UInt8) -> Row {
    switch code {
    case 0x05, 0x0F:
      Row(
        .authenticationFailure, .retryPairing, .medium,
        "The device wants a bond before it shows its attributes.")
    case 0x08, 0x0C:
      Row(.authenticationFailure, .retryPairing, .low, "The device wants a better bond, or another user.")
    case 0x11: Row(.remoteLowResources, .retryConnection, .medium)
    default:
      Row(
        .protocolViolation, .retryConnection, .medium, "The session cannot become ready without this answer.")
    }
  }
}

extension DiagnosisTable.Row {
  /// The same reading of a source that folds reasons.
  fileprivate var weakened: DiagnosisTable.Row {
    DiagnosisTable.Row(reason, recovery, min(confidence, .medium), note)
  }
}
