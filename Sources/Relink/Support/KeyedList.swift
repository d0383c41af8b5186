/// Values under numbers that are given in ascending order, a few at a time.
///
/// A sorted array: for the handful of entries that there usually are it takes less memory and time than a dictionary,
/// and it is walked in the same order in each run.
struct KeyedList<Key: RawRepresentable, Value> where Key.RawValue: FixedWidthInteger {
  private var entries: [(key: Key.RawValue, value: Value)] = []

  init() {}

  var count: Int { entries.count }

  subscript(key: Key) -> Value? {
    get {
      let position = position(of: key.rawValue)
      return isFound(key.rawValue, at: position) ? entries[position].value : nil
    }
    set {
      let position = position(of: key.rawValue)
      switch (newValue, isFound(key.rawValue, at: position)) {
      case (let value?, true): entries[position].value = value
      case (let value?, false): entries.insert((key.rawValue, value), at: position)
      case (nil, true): entries.remove(at: position)
      case (nil, false): break
      }
    }
  }

  /// The value under a key, which is put there first if there is none.
  subscript(key: Key, default value: @autoclosure () -> Value) -> Value {
    get { self[key] ?? value() }
    set { self[key] = newValue }
  }

  mutating func removeValue(forKey key: Key) -> Value? {
    let position = position(of: key.rawValue)
    return isFound(key.rawValue, at: position) ? entries.remove(at: position).value : nil
  }

  mutating func removeAll() {
    entries = []
  }

  private func isFound(_ key: Key.RawValue, at position: Int) -> Bool {
    position < entries.count && entries[position].key == key
  }

  /// Where the key is, or where it belongs.
  private func position(of key: Key.RawValue) -> Int {
    // The latest key is asked for most often.
    if let last = entries.last, last.key < key { return entries.count }
    var low = 0
    var high = entries.count
    while low < high {
      let middle = (low + high) / 2
      if entries[middle].key < key { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
