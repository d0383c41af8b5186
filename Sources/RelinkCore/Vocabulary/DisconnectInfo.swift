public import BluetoothWire

/// Why an attempt failed or a link ended.
@nonexhaustive
public enum DisconnectReason: String, Hashable, Sendable, CaseIterable {
  /// Asked for here: `disconnect()`, `close()`, a cancelled caller.
  case requested
  /// The device was not heard within the time of one dial.
  case notFound
  /// The connection request was answered by nothing (HCI 0x3E).
  case failedToEstablish
  /// Nothing was received for the supervision timeout (HCI 0x08).
  case supervisionTimeout
  /// The device, or its user, ended the link (HCI 0x13).
  case remoteUserTerminated
  /// The device ended the link for want of resources (HCI 0x14).
  case remoteLowResources
  /// The device is about to power off (HCI 0x15).
  case remotePowerOff
  /// The host here ended the link (HCI 0x16) without the session asking for it.
  case localHostTerminated
  /// Link layer timing or parameters went wrong (HCI 0x22, 0x28, 0x3B and their like).
  case linkLayerFault
  /// Authentication failed (HCI 0x05).
  case authenticationFailure
  /// One side has no key for the other (HCI 0x06).
  case keyMissing
  /// A packet failed its message integrity check (HCI 0x3D).
  case micFailure
  /// The two sides did not agree on the parameters of the connection (HCI 0x3B).
  case connectionParameters
  /// No bond with the device is known here, and the session's policy does not pair.
  case bondMissing
  /// Pairing was refused by the device, by the user or by this host, or failed.
  case pairingFailed
  /// The link was not secured in the time that the policy gives.
  case securityTimeout
  /// The adapter is switched off.
  case adapterOff
  /// The adapter is blocked by a switch of this machine (rfkill).
  case adapterBlocked
  /// bluetoothd stopped, which switches the adapter off.
  case daemonStopped
  /// The host was suspended.
  case suspended
  /// The adapter is not there, or was removed.
  case adapterMissing
  /// The system does not permit what was tried.
  case notPermitted
  /// The radio is busy with another connection for the moment.
  case busy
  /// Another socket or another program, bluetoothd for one, holds the device's ATT channel.
  case channelInUse
  /// The adapter has no room for one more link.
  case outOfSlots
  /// The adapter has refused every dial for some time: it may need to be switched off and on.
  case adapterStuck
  /// The host listed a link that its controller does not have, or that answers nothing.
  case phantomLink
  /// The device is there under another type of its address.
  case wrongAddressType
  /// An ATT transaction was not answered within 30 s (Core Specification Vol 3 Part F 3.3.3).
  case transactionTimeout
  /// The device sent what the protocol does not allow.
  case protocolViolation
  /// The app's setup failed or did not end in time.
  case setupFailed
  /// The link did not become ready in time.
  case preparationTimeout
  /// The device, or the way to it, refused the connection.
  case refused
  /// An operation's deadline passed while the device had the request, and the link was to be dropped then.
  case operationExpired
  /// None of the above; the codes are kept in the evidence.
  case unknown
}

/// One fact that speaks about the end of a link, with the source that it comes from.
@nonexhaustive
public enum Evidence: Hashable, Sendable {
  /// A system call that can say why a link is lost.
  @nonexhaustive
  public enum SystemCall: String, Hashable, Sendable {
    /// The connect that a dial is made of.
    case connect
    /// A read from the channel.
    case receive
    /// A write to the channel.
    case send
    /// The system's query for a pending error.
    case pendingError
  }

  /// A reason from the controller: of a disconnection, or of a connection that was not made.
  case hci(HCIErrorCode)
  /// What the controller says about switching encryption on.
  case encryption(HCIErrorCode)
  /// What the kernel's management interface says about pairing, as the raw number of its status.
  case pairing(UInt8)
  /// A reason from the kernel's management interface, as its raw number.
  case management(UInt8)
  /// An error number, and the call that returned it: the number means nothing without it.
  case system(Int32, call: SystemCall)
  /// End of file on the channel.
  case endOfFile
  /// An ATT error from the device.
  case att(ATTErrorCode)
  /// What the link itself saw, in words.
  case observation(String)
}

extension Evidence: CustomStringConvertible {
  /// The fact with its source, on one line.
  public var description: String {
    switch self {
    case .hci(let code): "HCI: \(code)"
    case .encryption(let code): "HCI encryption: \(code)"
    case .pairing(let status): "mgmt pairing status \(status)"
    case .management(let reason): "mgmt reason \(reason)"
    case .system(let number, let call): "errno \(number) from \(call.rawValue)"
    case .endOfFile: "end of file"
    case .att(let code): "ATT: \(code)"
    case .observation(let text): text
    }
  }
}

/// How sure a diagnosis is.
@nonexhaustive
public enum Confidence: Int, Hashable, Sendable, Comparable {
  /// A guess from an ambiguous code.
  case low
  /// The code has this meaning in most cases.
  case medium
  /// The source states it.
  case high

  /// Whether the left one is the weaker statement.
  public static func < (left: Confidence, right: Confidence) -> Bool { left.rawValue < right.rawValue }
}

/// The next step after a loss.
///
/// It promises nothing.
@nonexhaustive
public enum RecoveryAction: Hashable, Sendable {
  /// The session restores link and setup; once ready the app may repeat its request.
  case retryOperation
  /// The link failed; the session tries again. Keep the device near and powered.
  case retryConnection
  /// The keys are no longer usable: remove the pairing on both sides and pair again.
  case removePairingAndPairAgain
  /// Pairing was refused: put the device into pairing mode and try again.
  case retryPairing
  /// The adapter is off, gone, blocked or not permitted; it goes on by itself once that ends.
  case waitForAdapter
  /// Nothing to do.
  case none
}

/// What a transport says at the end of a link or of an attempt.
public struct LinkLoss: Hashable, Sendable {
  /// The transport's own reading of the evidence.
  public var reason: DisconnectReason

  /// The facts behind it, the most telling first.
  public var evidence: [Evidence]

  /// Describes a loss.
  public init(_ reason: DisconnectReason, evidence: [Evidence] = []) {
    self.reason = reason
    self.evidence = evidence
  }
}

/// Everything that is known about the end of a link or of an attempt, and what to do next.
public struct DisconnectInfo: Hashable, Sendable {
  /// Why.
  public var reason: DisconnectReason
  /// The facts behind it, with their raw codes and sources.
  public var evidence: [Evidence]
  /// How sure the reason is.
  public var confidence: Confidence
  /// The next step.
  public var recovery: RecoveryAction
  /// Whether the session goes on by itself.
  public var willReconnect: Bool
  /// The link that ended; nil for an attempt whose link never came up.
  public var generation: Generation?
  /// How many operations were offered on the link and can no longer be answered.
  public var inDoubt: Int
  /// How many writes without response were handed over on the link after the last request that was answered: they
  /// succeeded as handed over, and nothing shows that they arrived.
  public var unconfirmed: Int
  /// Why the app said that this would happen, which makes it no fault; nil where it did not say so.
  public var expectation: String?

  /// Describes the end of a link or of an attempt.
  public init(
    reason: DisconnectReason, evidence: [Evidence], confidence: Confidence, recovery: RecoveryAction,
    willReconnect: Bool, generation: Generation?, inDoubt: Int, unconfirmed: Int = 0,
    expectation: String? = nil
  ) {
    self.reason = reason
    self.evidence = evidence
    self.confidence = confidence
    self.recovery = recovery
    self.willReconnect = willReconnect
    self.generation = generation
    self.inDoubt = inDoubt
    self.unconfirmed = unconfirmed
    self.expectation = expectation
  }
}
