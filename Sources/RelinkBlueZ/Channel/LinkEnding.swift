internal import Relink

/// What lies beneath the socket of a channel: a link that outlives it and is ended by itself.
///
/// Used on the loop. A channel without one has a link that is gone as soon as its descriptor is closed.
protocol LinkEnding: AnyObject, Sendable {
  /// Takes the descriptor over, closes it and ends the link.
  ///
  /// `gone` is called once, on the loop and later than this call, when the link is seen gone. `hasSent` and
  /// `hasReceived` say whether anything ever went either way on the descriptor.
  func end(
    _ registration: DescriptorRegistration, hasSent: Bool, hasReceived: Bool,
    gone: @escaping @Sendable (LinkLoss) -> Void)

  /// Adds what other sources know of a loss, at once or a little later; the descriptor is closed already.
  ///
  /// `hasReceived` says whether anything ever arrived on it.
  func explain(_ loss: LinkLoss, hasReceived: Bool, then report: @escaping @Sendable (LinkLoss) -> Void)
}
