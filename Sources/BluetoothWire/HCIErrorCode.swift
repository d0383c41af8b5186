/// Why a controller refused a command or ended a link (Core Specification Vol 1 Part F 1.3).
///
/// Open: any octet is a value. The same numbers are the reasons of a disconnection.
public struct HCIErrorCode: RawRepresentable, Hashable, Sendable {
  /// The octet on the wire.
  public let rawValue: UInt8

  /// The code with this octet.
  ///
  /// - Parameter rawValue: Any octet.
  @inlinable
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// Success.
  public static let success = HCIErrorCode(rawValue: 0x00)
  /// Unknown HCI command.
  public static let unknownHCICommand = HCIErrorCode(rawValue: 0x01)
  /// Unknown connection identifier.
  public static let unknownConnectionIdentifier = HCIErrorCode(rawValue: 0x02)
  /// Hardware failure.
  public static let hardwareFailure = HCIErrorCode(rawValue: 0x03)
  /// Page timeout.
  public static let pageTimeout = HCIErrorCode(rawValue: 0x04)
  /// Authentication failure.
  public static let authenticationFailure = HCIErrorCode(rawValue: 0x05)
  /// PIN or key missing.
  public static let pinOrKeyMissing = HCIErrorCode(rawValue: 0x06)
  /// Memory capacity exceeded.
  public static let memoryCapacityExceeded = HCIErrorCode(rawValue: 0x07)
  /// Connection timeout.
  public static let connectionTimeout = HCIErrorCode(rawValue: 0x08)
  /// Connection limit exceeded.
  public static let connectionLimitExceeded = HCIErrorCode(rawValue: 0x09)
  /// Synchronous connection limit to a device exceeded.
  public static let synchronousConnectionLimitExceeded = HCIErrorCode(rawValue: 0x0A)
  /// Connection already exists.
  public static let connectionAlreadyExists = HCIErrorCode(rawValue: 0x0B)
  /// Command disallowed.
  public static let commandDisallowed = HCIErrorCode(rawValue: 0x0C)
  /// Connection rejected due to limited resources.
  public static let connectionRejectedLimitedResources = HCIErrorCode(rawValue: 0x0D)
  /// Connection rejected due to security reasons.
  public static let connectionRejectedSecurityReasons = HCIErrorCode(rawValue: 0x0E)
  /// Connection rejected due to unacceptable address.
  public static let connectionRejectedUnacceptableAddress = HCIErrorCode(rawValue: 0x0F)
  /// Connection accept timeout exceeded.
  public static let connectionAcceptTimeoutExceeded = HCIErrorCode(rawValue: 0x10)
  /// Unsupported feature or parameter value.
  public static let unsupportedFeatureOrParameterValue = HCIErrorCode(rawValue: 0x11)
  /// Invalid HCI command parameters.
  public static let invalidHCICommandParameters = HCIErrorCode(rawValue: 0x12)
  /// Remote user terminated connection.
  public static let remoteUserTerminatedConnection = HCIErrorCode(rawValue: 0x13)
  /// Remote device terminated connection due to low resources.
  public static let remoteDeviceTerminatedLowResources = HCIErrorCode(rawValue: 0x14)
  /// Remote device terminated connection due to power off.
  public static let remoteDeviceTerminatedPowerOff = HCIErrorCode(rawValue: 0x15)
  /// Connection terminated by local host.
  public static let connectionTerminatedByLocalHost = HCIErrorCode(rawValue: 0x16)
  /// Repeated attempts.
  public static let repeatedAttempts = HCIErrorCode(rawValue: 0x17)
  /// Pairing not allowed.
  public static let pairingNotAllowed = HCIErrorCode(rawValue: 0x18)
  /// Unknown LMP PDU.
  public static let unknownLMPPDU = HCIErrorCode(rawValue: 0x19)
  /// Unsupported remote feature.
  public static let unsupportedRemoteFeature = HCIErrorCode(rawValue: 0x1A)
  /// SCO offset rejected.
  public static let scoOffsetRejected = HCIErrorCode(rawValue: 0x1B)
  /// SCO interval rejected.
  public static let scoIntervalRejected = HCIErrorCode(rawValue: 0x1C)
  /// SCO air mode rejected.
  public static let scoAirModeRejected = HCIErrorCode(rawValue: 0x1D)
  /// Invalid LMP or LL parameters.
  public static let invalidLMPOrLLParameters = HCIErrorCode(rawValue: 0x1E)
  /// Unspecified error.
  public static let unspecifiedError = HCIErrorCode(rawValue: 0x1F)
  /// Unsupported LMP or LL parameter value.
  public static let unsupportedLMPOrLLParameterValue = HCIErrorCode(rawValue: 0x20)
  /// Role change not allowed.
  public static let roleChangeNotAllowed = HCIErrorCode(rawValue: 0x21)
  /// LMP or LL response timeout.
  public static let lmpOrLLResponseTimeout = HCIErrorCode(rawValue: 0x22)
  /// LMP error transaction collision or LL procedure collision.
  public static let procedureCollision = HCIErrorCode(rawValue: 0x23)
  /// LMP PDU not allowed.
  public static let lmpPDUNotAllowed = HCIErrorCode(rawValue: 0x24)
  /// Encryption mode not acceptable.
  public static let encryptionModeNotAcceptable = HCIErrorCode(rawValue: 0x25)
  /// Link key cannot be changed.
  public static let linkKeyCannotBeChanged = HCIErrorCode(rawValue: 0x26)
  /// Requested QoS not supported.
  public static let requestedQoSNotSupported = HCIErrorCode(rawValue: 0x27)
  /// Instant passed.
  public static let instantPassed = HCIErrorCode(rawValue: 0x28)
  /// Pairing with unit key not supported.
  public static let pairingWithUnitKeyNotSupported = HCIErrorCode(rawValue: 0x29)
  /// Different transaction collision.
  public static let differentTransactionCollision = HCIErrorCode(rawValue: 0x2A)
  /// QoS unacceptable parameter.
  public static let qosUnacceptableParameter = HCIErrorCode(rawValue: 0x2C)
  /// QoS rejected.
  public static let qosRejected = HCIErrorCode(rawValue: 0x2D)
  /// Channel classification not supported.
  public static let channelClassificationNotSupported = HCIErrorCode(rawValue: 0x2E)
  /// Insufficient security.
  public static let insufficientSecurity = HCIErrorCode(rawValue: 0x2F)
  /// Parameter out of mandatory range.
  public static let parameterOutOfMandatoryRange = HCIErrorCode(rawValue: 0x30)
  /// Role switch pending.
  public static let roleSwitchPending = HCIErrorCode(rawValue: 0x32)
  /// Reserved slot violation.
  public static let reservedSlotViolation = HCIErrorCode(rawValue: 0x34)
  /// Role switch failed.
  public static let roleSwitchFailed = HCIErrorCode(rawValue: 0x35)
  /// Extended inquiry response too large.
  public static let extendedInquiryResponseTooLarge = HCIErrorCode(rawValue: 0x36)
  /// Secure simple pairing not supported by host.
  public static let secureSimplePairingNotSupportedByHost = HCIErrorCode(rawValue: 0x37)
  /// Host busy pairing.
  public static let hostBusyPairing = HCIErrorCode(rawValue: 0x38)
  /// Connection rejected due to no suitable channel found.
  public static let connectionRejectedNoSuitableChannel = HCIErrorCode(rawValue: 0x39)
  /// Controller busy.
  public static let controllerBusy = HCIErrorCode(rawValue: 0x3A)
  /// Unacceptable connection parameters.
  public static let unacceptableConnectionParameters = HCIErrorCode(rawValue: 0x3B)
  /// Advertising timeout.
  public static let advertisingTimeout = HCIErrorCode(rawValue: 0x3C)
  /// Connection terminated due to MIC failure.
  public static let connectionTerminatedMICFailure = HCIErrorCode(rawValue: 0x3D)
  /// Connection failed to be established.
  public static let connectionFailedToBeEstablished = HCIErrorCode(rawValue: 0x3E)
  /// MAC connection failed.
  public static let macConnectionFailed = HCIErrorCode(rawValue: 0x3F)
  /// Coarse clock adjustment rejected but will try to adjust using clock dragging.
  public static let coarseClockAdjustmentRejected = HCIErrorCode(rawValue: 0x40)
  /// Type 0 submap not defined.
  public static let type0SubmapNotDefined = HCIErrorCode(rawValue: 0x41)
  /// Unknown advertising identifier.
  public static let unknownAdvertisingIdentifier = HCIErrorCode(rawValue: 0x42)
  /// Limit reached.
  public static let limitReached = HCIErrorCode(rawValue: 0x43)
  /// Operation cancelled by host.
  public static let operationCancelledByHost = HCIErrorCode(rawValue: 0x44)
  /// Packet too long.
  public static let packetTooLong = HCIErrorCode(rawValue: 0x45)
  /// Too late.
  public static let tooLate = HCIErrorCode(rawValue: 0x46)
  /// Too early.
  public static let tooEarly = HCIErrorCode(rawValue: 0x47)
  /// Insufficient channels.
  public static let insufficientChannels = HCIErrorCode(rawValue: 0x48)
}

extension HCIErrorCode: CustomStringConvertible {
  /// True if the specification defines the code: 0x00 to 0x48 without 0x2B, 0x31 and 0x33.
  public var isDefined: Bool { name != nil }

  /// The name in words and the octet, such as `connection timeout (0x08)`.
  public var description: String { "\(name ?? "reserved error") (0x\(hexadecimal(rawValue, digits: 2)))" }

  private var name: String? {
    switch self {
    case .success: "success"
    case .unknownHCICommand: "unknown HCI command"
    case .unknownConnectionIdentifier: "unknown connection identifier"
    case .hardwareFailure: "hardware failure"
    case .pageTimeout: "page timeout"
    case .authenticationFailure: "authentication failure"
    case .pinOrKeyMissing: "PIN or key missing"
    case .memoryCapacityExceeded: "memory capacity exceeded"
    case .connectionTimeout: "connection timeout"
    case .connectionLimitExceeded: "connection limit exceeded"
    case .synchronousConnectionLimitExceeded: "synchronous connection limit to a device exceeded"
    case .connectionAlreadyExists: "connection already exists"
    case .commandDisallowed: "command disallowed"
    case .connectionRejectedLimitedResources: "connection rejected due to limited resources"
    case .connectionRejectedSecurityReasons: "connection rejected due to security reasons"
    case .connectionRejectedUnacceptableAddress: "connection rejected due to unacceptable address"
    case .connectionAcceptTimeoutExceeded: "connection accept timeout exceeded"
    case .unsupportedFeatureOrParameterValue: "unsupported feature or parameter value"
    case .invalidHCICommandParameters: "invalid HCI command parameters"
    case .remoteUserTerminatedConnection: "remote user terminated connection"
    case .remoteDeviceTerminatedLowResources: "remote device terminated connection due to low resources"
    case .remoteDeviceTerminatedPowerOff: "remote device terminated connection due to power off"
    case .connectionTerminatedByLocalHost: "connection terminated by local host"
    case .repeatedAttempts: "repeated attempts"
    case .pairingNotAllowed: "pairing not allowed"
    case .unknownLMPPDU: "unknown LMP PDU"
    case .unsupportedRemoteFeature: "unsupported remote feature"
    case .scoOffsetRejected: "SCO offset rejected"
    case .scoIntervalRejected: "SCO interval rejected"
    case .scoAirModeRejected: "SCO air mode rejected"
    case .invalidLMPOrLLParameters: "invalid LMP or LL parameters"
    case .unspecifiedError: "unspecified error"
    case .unsupportedLMPOrLLParameterValue: "unsupported LMP or LL parameter value"
    case .roleChangeNotAllowed: "role change not allowed"
    case .lmpOrLLResponseTimeout: "LMP or LL response timeout"
    case .procedureCollision: "LMP error transaction collision or LL procedure collision"
    case .lmpPDUNotAllowed: "LMP PDU not allowed"
    case .encryptionModeNotAcceptable: "encryption mode not acceptable"
    case .linkKeyCannotBeChanged: "link key cannot be changed"
    case .requestedQoSNotSupported: "requested QoS not supported"
    case .instantPassed: "instant passed"
    case .pairingWithUnitKeyNotSupported: "pairing with unit key not supported"
    case .differentTransactionCollision: "different transaction collision"
    case .qosUnacceptableParameter: "QoS unacceptable parameter"
    case .qosRejected: "QoS rejected"
    case .channelClassificationNotSupported: "channel classification not supported"
    case .insufficientSecurity: "insufficient security"
    case .parameterOutOfMandatoryRange: "parameter out of mandatory range"
    case .roleSwitchPending: "role switch pending"
    case .reservedSlotViolation: "reserved slot violation"
    case .roleSwitchFailed: "role switch failed"
    case .extendedInquiryResponseTooLarge: "extended inquiry response too large"
    case .secureSimplePairingNotSupportedByHost: "secure simple pairing not supported by host"
    case .hostBusyPairing: "host busy pairing"
    case .connectionRejectedNoSuitableChannel: "connection rejected due to no suitable channel found"
    case .controllerBusy: "controller busy"
    case .unacceptableConnectionParameters: "unacceptable connection parameters"
    case .advertisingTimeout: "advertising timeout"
    case .connectionTerminatedMICFailure: "connection terminated due to MIC failure"
    case .connectionFailedToBeEstablished: "connection failed to be established"
    case .macConnectionFailed: "MAC connection failed"
    case .coarseClockAdjustmentRejected:
      "coarse clock adjustment rejected but will try to adjust using clock dragging"
    case .type0SubmapNotDefined: "type 0 submap not defined"
    case .unknownAdvertisingIdentifier: "unknown advertising identifier"
    case .limitReached: "limit reached"
    case .operationCancelledByHost: "operation cancelled by host"
    case .packetTooLong: "packet too long"
    case .tooLate: "too late"
    case .tooEarly: "too early"
    case .insufficientChannels: "insufficient channels"
    default: nil
    }
  }
}
