extension Array<DiscoveredService> {
  /// Finds the characteristic that a name means, as a link does when it is asked by that name.
  ///
  /// Occurrences are counted from 0 in the order of handles: among those in services of the UUID that the name gives,
  /// or among all where it leaves the service open.
  ///
  /// - Parameter name: A name, however exact.
  /// - Returns: The characteristic with its unambiguous name, nil if the table has none.
  public func resolve(_ name: Characteristic) -> DiscoveredCharacteristic? {
    guard name.occurrence >= 0 else { return nil }
    var remaining = name.occurrence
    for service in self where name.service == nil || name.service == service.uuid {
      for characteristic in service.characteristics where characteristic.name.uuid == name.uuid {
        if remaining == 0 { return characteristic }
        remaining -= 1
      }
    }
    return nil
  }
}
