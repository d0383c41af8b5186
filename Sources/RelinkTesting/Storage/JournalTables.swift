internal import Relink

/// What a journal store holds: claims and rows of each device, and how records change them.
///
/// Every change gives what is needed to take it back, the latest first.
struct JournalTables {
  /// What is kept of one device.
  struct Device {
    var epoch: UInt64 = 0
    var owner = ""
    var lastPlace: Int64 = 0
    /// By the bytes of their names: text that merely looks the same is another name.
    var rows: [[UInt8]: JournalRow] = [:]

    var ordered: [JournalRow] {
      rows.values.sorted { ($0.place, $0.id) < ($1.place, $1.id) }
    }
  }

  /// How a device was before a change.
  struct Undo {
    fileprivate var device: DeviceID
    fileprivate var header: Device?
    fileprivate var rows: [(key: [UInt8], row: JournalRow?)] = []
  }

  private(set) var devices: [DeviceID: Device] = [:]

  // MARK: Claims

  mutating func claim(
    _ id: DeviceID, owner: String, epoch: UInt64?
  ) throws(JournalStoreError) -> (ClaimedJournal, Undo) {
    let undo = Undo(device: id, header: header(of: id))
    var device = devices[id] ?? Device()
    guard device.epoch < .max, epoch ?? .max > device.epoch else { throw superseded(id, by: device.epoch) }
    device.epoch = epoch ?? device.epoch + 1
    device.owner = owner
    devices[id] = device
    let open = device.ordered.filter { $0.outcome == nil || !$0.isDelivered }
    let claim = JournalClaim(device: id, epoch: device.epoch)
    return (ClaimedJournal(claim: claim, rows: open, lastPlace: device.lastPlace), undo)
  }

  // MARK: Records

  mutating func append(
    _ records: [JournalRecord], to claim: JournalClaim
  ) throws(JournalStoreError) -> ([JournalRow], Undo) {
    guard let present = devices[claim.device] else {
      throw JournalStoreError(
        .superseded, "Nobody has claimed the journal of \(claim.device) in this store. Claim it first.")
    }
    guard present.epoch == claim.epoch else { throw superseded(claim.device, by: present.epoch) }
    var undo = Undo(device: claim.device, header: header(of: claim.device))
    var taken: [JournalRow] = []
    do throws(JournalStoreError) {
      for record in records { try apply(record, to: claim.device, &taken, &undo) }
    } catch {
      takeBack(undo)
      throw error
    }
    return (taken, undo)
  }

  private mutating func apply(
    _ record: JournalRecord, to device: DeviceID, _ taken: inout [JournalRow], _ undo: inout Undo
  ) throws(JournalStoreError) {
    switch record {
    case .admitted(let row):
      let key = Array(row.id.utf8)
      if let there = devices[device]?.rows[key] {
        taken.append(there)
      } else {
        undo.rows.append((key, nil))
        devices[device]?.rows[key] = row
        let lastPlace = devices[device]?.lastPlace ?? 0
        devices[device]?.lastPlace = max(row.place, lastPlace)
      }
    case .marked(let id, let mark):
      var row = try row(id, of: device)
      row.mark = mark
      set(row, of: device, &undo)
    case .settled(let id, let outcome, let instant, let operation):
      var row = try row(id, of: device)
      if let present = row.outcome {
        // The same once more is a repetition, of a batch whose fate was uncertain.
        guard present == outcome else {
          throw invalid("The operation \"\(id)\" has another outcome already, which stays.")
        }
      } else {
        row.outcome = outcome
        row.settledAt = instant
      }
      if let operation { row.operation = operation }
      set(row, of: device, &undo)
    case .delivered(let id):
      var row = try row(id, of: device)
      row.isDelivered = true
      set(row, of: device, &undo)
    case .pruned(let before, let keeping):
      prune(device, before: before, keeping: keeping, &undo)
    @unknown default:
      throw invalid("This store does not know the record \(record).")
    }
  }

  private func row(_ id: String, of device: DeviceID) throws(JournalStoreError) -> JournalRow {
    guard let row = devices[device]?.rows[Array(id.utf8)] else {
      throw invalid("The store has no operation \"\(id)\" of this device. Record it before its changes.")
    }
    return row
  }

  private mutating func set(_ row: JournalRow, of device: DeviceID, _ undo: inout Undo) {
    let key = Array(row.id.utf8)
    undo.rows.append((key, devices[device]?.rows.updateValue(row, forKey: key)))
  }

  private mutating func prune(_ device: DeviceID, before: Int64, keeping: Int, _ undo: inout Undo) {
    let settled = (devices[device]?.ordered ?? []).filter { $0.outcome != nil }
    let newestFirst = settled.sorted {
      ($0.settledAt ?? .min, $0.place) > ($1.settledAt ?? .min, $1.place)
    }
    let old = newestFirst.enumerated().filter {
      $0.offset >= keeping || $0.element.settledAt ?? .max < before
    }
    for (_, row) in old {
      let key = Array(row.id.utf8)
      undo.rows.append((key, devices[device]?.rows.removeValue(forKey: key)))
    }
  }

  // MARK: Taking back

  private func header(of device: DeviceID) -> Device? {
    guard var header = devices[device] else { return nil }
    header.rows = [:]
    return header
  }

  mutating func takeBack(_ undo: Undo) {
    guard let header = undo.header else {
      devices[undo.device] = nil
      return
    }
    devices[undo.device]?.epoch = header.epoch
    devices[undo.device]?.owner = header.owner
    devices[undo.device]?.lastPlace = header.lastPlace
    for (key, row) in undo.rows.reversed() { devices[undo.device]?.rows[key] = row }
  }

  private func invalid(_ message: String) -> JournalStoreError {
    JournalStoreError(.invalidRecord, message)
  }

  private func superseded(_ device: DeviceID, by epoch: UInt64) -> JournalStoreError {
    JournalStoreError(
      .superseded,
      "The journal of \(device) was claimed with epoch \(epoch): a claim must be higher, and a lower one writes no more."
    )
  }
}
