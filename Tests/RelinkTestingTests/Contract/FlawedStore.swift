import Relink
import RelinkTesting

/// What a store can get wrong; each breaks some rule of its contract.
enum StoreFlaw: Sendable {
  case ignoresEpochs, grantsLowClaims, reversesRows, forgetsEmptyParts, forgetsPlaces, tearsBatches,
    hidesErrors
  case hidesTakenIDs, comparesText, keepsFirstMark, erasesNothing, prunesNoAge, prunesNoCount
  case servesOldClaims, servesAnybody, mixesDevices, ignoresEmptyBatches, forgetsEverything
  case answersTwice, answersInsideTheCall, swapsAnswers
}

/// A store with one flaw around one that has none.
final class FlawedStore: JournalStore {
  typealias Done<Value> = @Sendable (Result<Value, JournalStoreError>) -> Void

  private struct Memory {
    var epochs: [DeviceID: UInt64] = [:]
    var marked: Set<String> = []
    var kept: (@Sendable () -> Void)?
  }

  let base: any JournalStore
  private let flaw: StoreFlaw
  private let memory = Locked(Memory())

  init(_ base: any JournalStore, _ flaw: StoreFlaw) {
    self.base = base
    self.flaw = flaw
  }

  func claim(_ device: DeviceID, owner: String, epoch: UInt64?, _ done: @escaping Done<ClaimedJournal>) {
    if flaw == .answersInsideTheCall {
      return done(.failure(JournalStoreError(.closed, "at once")))
    }
    base.claim(target(device), owner: owner, epoch: flaw == .ignoresEpochs ? nil : epoch) { [self] result in
      if case .failure = result, flaw == .grantsLowClaims {
        return base.claim(device, owner: owner, epoch: nil, done)
      }
      answer(result.map { changed($0) }, done)
    }
  }

  func append(
    _ records: [JournalRecord], to claim: JournalClaim, sync: JournalSync,
    _ done: @escaping Done<[JournalRow]>
  ) {
    var claim = claim
    claim.device = target(claim.device)
    if flaw == .servesOldClaims, let present = memory.withLock({ $0.epochs[claim.device] }) {
      claim.epoch = present
    }
    if flaw == .ignoresEmptyBatches && records.isEmpty { return }
    if flaw == .tearsBatches && records.count > 1 {
      for record in records.dropLast() { base.append([record], to: claim, sync: sync) { _ in } }
    }
    let passed = flaw == .tearsBatches ? Array(records.suffix(1)) : records.compactMap(changed)
    base.append(passed, to: claim, sync: sync) { [self] result in
      var result = result
      if case .failure(let error) = result {
        let isHidden =
          error.code == .superseded ? flaw == .servesAnybody : flaw == .hidesErrors
        if isHidden { result = .success([]) }
      }
      answer(result.map { flaw == .hidesTakenIDs ? [] : $0 }, done)
    }
  }

  private func target(_ device: DeviceID) -> DeviceID {
    flaw == .mixesDevices ? DeviceID("the only one") ?? device : device
  }

  private func answer<Value: Sendable>(
    _ result: Result<Value, JournalStoreError>, _ done: @escaping Done<Value>
  ) {
    if flaw == .swapsAnswers {
      let before: (@Sendable () -> Void)? = memory.withLock { memory in
        guard let kept = memory.kept else {
          memory.kept = { done(result) }
          return nil
        }
        memory.kept = nil
        return kept
      }
      guard let before else { return }
      done(result)
      return before()
    }
    done(result)
    if flaw == .answersTwice { done(result) }
  }

  private func changed(_ journal: ClaimedJournal) -> ClaimedJournal {
    var journal = journal
    memory.withLock { $0.epochs[journal.claim.device] = journal.claim.epoch }
    switch flaw {
    case .reversesRows: journal.rows.reverse()
    case .forgetsEmptyParts:
      for index in journal.rows.indices where journal.rows[index].mark == [] {
        journal.rows[index].mark = nil
      }
    case .forgetsPlaces: journal.lastPlace = journal.rows.last?.place ?? 0
    default: break
    }
    return journal
  }

  private func changed(_ record: JournalRecord) -> JournalRecord? {
    switch record {
    case .admitted(var row):
      if flaw == .comparesText, row.id == "\u{FC}" { row.id = "\u{FC}" }
      return .admitted(row)
    case .marked(let id, _):
      guard flaw == .keepsFirstMark else { return record }
      return memory.withLock { $0.marked.insert(id).inserted } ? record : nil
    case .settled(let id, let outcome, let instant, _):
      return flaw == .erasesNothing
        ? .settled(id: id, outcome: outcome, at: instant, operation: nil) : record
    case .pruned(let before, let keeping):
      return .pruned(
        settledBefore: flaw == .prunesNoAge ? .min : before, keeping: flaw == .prunesNoCount ? .max : keeping)
    default: return record
    }
  }
}
