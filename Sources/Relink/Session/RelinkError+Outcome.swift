internal import RelinkCore

extension RelinkError {
  /// The error for an operation that did not succeed, with what its caller should know and do.
  init(
    operation: OperationID, outcome: Outcome<GATTAnswer>, request: GATTRequest, disconnect: DisconnectInfo?
  ) {
    let subject = request.characteristic.map { " on \($0)" } ?? ""
    switch outcome {
    case .succeeded:
      self.init(.notSent, "The operation\(subject) succeeded.", operation: operation)
    case .rejected(let rejection):
      let proof =
        rejection.provesNotApplied
        ? "It was not applied." : "That does not prove that it was not applied."
      self.init(
        .rejected, "The device answered\(subject) with \(rejection.code). \(proof)",
        outcome: .rejected(rejection), operation: operation)
    case .notSent(.refused(.characteristicNotFound)):
      self.init(
        .characteristicNotFound, "The device has no such characteristic\(subject); nothing was sent.",
        outcome: .notSent(.refused(.characteristicNotFound)), operation: operation)
    case .notSent(.linkLost):
      self.init(
        .linkLost, "The link that the request\(subject) belonged to is gone; nothing was sent.",
        outcome: .notSent(.linkLost), operation: operation, disconnect: disconnect)
    case .notSent(let reason):
      self.init(
        .notSent, "The operation\(subject) was never sent (\(reason)): it is safe to repeat.",
        outcome: .notSent(reason), operation: operation, disconnect: disconnect)
    case .indeterminate(let doubt):
      self.init(
        .indeterminate,
        "The operation\(subject) was sent and no answer can come (\(doubt.cause)): it may have been applied, once. "
          + "Look at the device before you repeat it.",
        outcome: .indeterminate(doubt), operation: operation, disconnect: disconnect?.advising(doubt))
    }
  }
}

extension DisconnectInfo {
  /// The same loss as the caller of an operation in doubt should take it: the session restores the link by itself, and
  /// what is left to decide is whether to repeat the operation.
  fileprivate func advising(_ doubt: Doubt) -> DisconnectInfo {
    guard case .linkLost = doubt.cause, willReconnect, recovery == .retryConnection else { return self }
    var info = self
    info.recovery = .retryOperation
    return info
  }
}
