/// The error numbers that a Linux kernel would give, whatever system the simulation runs on
/// (`include/uapi/asm-generic/errno-base.h`, `errno.h`).
enum ErrorNumber {
  static let accessDenied: Int32 = 13
  static let busy: Int32 = 16
  static let notSupported: Int32 = 38
  static let badExchange: Int32 = 52
  static let messageTooLong: Int32 = 90
  static let protocolNotSupported: Int32 = 93
  static let operationNotSupported: Int32 = 95
  static let connectionAborted: Int32 = 103
  static let connectionReset: Int32 = 104
  static let noBuffers: Int32 = 105
  static let notConnected: Int32 = 107
  static let timedOut: Int32 = 110
  static let connectionRefused: Int32 = 111
  static let hostUnreachable: Int32 = 113
}
