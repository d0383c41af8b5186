public import Relink

/// What ``LinkContract`` and ``TransportContract`` need to try an implementation of the seam.
///
/// Nobody else uses the transport, the device or its handler while a suite runs; each check leaves no link behind.
public protocol ContractEnvironment: Sendable {
  /// Lets the suite wait.
  var driver: any ContractDriver { get }
  /// The implementation.
  var transport: any Transport { get }
  /// A device that can be dialled.
  var device: DeviceID { get }
  /// A device that is never there; nil where there is none to be had.
  var absentDevice: DeviceID? { get }
  /// What answers for the device.
  var peer: any ContractPeer { get }
  /// Whether a dial waits until a link that was closed here is gone. A transport that leaves that to its user says no,
  /// and the rule is reported as skipped.
  var waitsForOldLinks: Bool { get }
  /// Whether nothing can come of a dial that was cancelled. A transport that has to let it end by itself says no; then
  /// a link that it still brings up has to be ended at once.
  var endsCancelledDials: Bool { get }
}

extension ContractEnvironment {
  /// Yes, as of a transport that says nothing else.
  public var endsCancelledDials: Bool { true }
}

/// The device at the far end, as the suites use it; its own counters are the judge.
public protocol ContractPeer: Sendable {
  /// A characteristic with a value of at most 512 bytes that can be read, written with and without response and in
  /// parts, and that notifies.
  var characteristic: Characteristic { get }
  /// Another one that can be written in parts; nil where there is none, so that rules about several are skipped.
  var secondCharacteristic: Characteristic? { get }
  /// How late an answer is that was asked to be late; less than the driver's quiet time.
  var slowAnswer: Duration { get }

  /// Sets the value without a word.
  ///
  /// - Parameter value: The value.
  func setValue(_ value: [UInt8]) async
  /// Notifies a value, to whoever asked for it.
  ///
  /// - Parameter value: The value.
  func notify(_ value: [UInt8]) async
  /// Ends the link.
  func endLink() async
  /// Does nothing about the next read or write of the value, and says nothing.
  func swallowNextRequest() async
  /// Answers the next read of the value late, on whatever link is there then.
  func answerNextReadLate() async
  /// Does nothing about the next execution of a long write, whose parts stay prepared, and says nothing.
  func swallowNextExecution() async
  /// Answers the next read or write of the value two times.
  func answerNextRequestTwice() async
  /// Forgets what it was told to do wrong.
  func behave() async
  /// The values that were written, to either characteristic, in order, since the start.
  ///
  /// - Returns: The values.
  func writes() async -> [[UInt8]]
  /// How many links there were since the start.
  ///
  /// - Returns: The number.
  func linkCount() async -> Int
  /// Lets the device be there or not, for dials.
  ///
  /// - Parameter isPresent: Whether it is there.
  /// - Returns: Whether that could be done.
  func setPresent(_ isPresent: Bool) async -> Bool
  /// Switches the adapter of the transport.
  ///
  /// - Parameter isOn: Whether it is to be on.
  /// - Returns: Whether that could be done.
  func setAdapter(_ isOn: Bool) async -> Bool
}

extension ContractPeer {
  /// None, as of a device that says nothing else.
  public var secondCharacteristic: Characteristic? { nil }
}
