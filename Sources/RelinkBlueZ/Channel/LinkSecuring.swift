internal import Relink

/// What secures the link beneath the socket of a channel.
///
/// Used on the loop. A channel without one has a link that cannot be secured.
protocol LinkSecuring: AnyObject, Sendable {
  /// Begins to secure the link. The socket is told the outcome, unless its link ends before.
  func secure(_ socket: any SecurableSocket, to level: SecurityLevel, keys: SecurityPolicy.KeySource)

  /// The socket whose security was raised takes data again.
  func socketBecameWritable()

  /// The socket is closed, from whichever side.
  func socketClosed()
}

/// The socket of a channel, as what secures its link uses it.
///
/// Used on the loop. What it is told reaches the user of the channel in a later job.
protocol SecurableSocket: AnyObject, Sendable {
  /// How far the link is secured.
  var security: SecurityLevel { get }

  /// Asks the kernel to secure the link; the error number where it would not, 0 where it has begun.
  ///
  /// The socket takes no data until that is done, and never again where it fails.
  func raise(to level: SecurityLevel) -> Int32

  func secured(_ level: SecurityLevel)
  func notSecured(_ loss: LinkLoss)
  func asks(_ question: PairingQuestion, _ responder: PairingResponder)

  /// Ends the link, which is of no use any more; this is why.
  func end(_ loss: LinkLoss)
}
