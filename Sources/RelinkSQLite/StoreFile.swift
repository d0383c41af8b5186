internal import Relink

#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// The files of a store: where they are, whose they are, and the lock that keeps other writers out.
///
/// The database file itself is never opened here: closing any descriptor of it would drop the locks that SQLite holds
/// on it in this process.
struct StoreFile: ~Copyable {
  /// The path without links, so that one file has one lock.
  let path: String
  /// What is in the file, for people: "journal".
  private let kind: StaticString
  private let lock: Int32

  /// Takes the lock of the file at `path`, which need not be there.
  init(locking path: String, of kind: StaticString = "journal") throws(JournalStoreError) {
    let resolved = try StoreFile.resolve(path, of: kind)
    let name = resolved + "-lock"
    let descriptor = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw StoreFile.error(errno, name, "open its lock") }
    guard fchmod(descriptor, 0o600) == 0 else {
      let number = errno
      _ = close(descriptor)
      throw StoreFile.error(number, name, "make its lock private")
    }
    var result: Int32
    repeat { result = flock(descriptor, LOCK_EX | LOCK_NB) } while result != 0 && errno == EINTR
    guard result == 0 else {
      let number = errno
      _ = close(descriptor)
      guard number == EWOULDBLOCK else { throw StoreFile.error(number, name, "lock it") }
      throw JournalStoreError(
        .locked,
        "Another store, here or in another process, writes the \(kind) \(path). One may at a time: close it first."
      )
    }
    self.path = resolved
    self.kind = kind
    lock = descriptor
  }

  deinit {
    _ = close(lock)
  }

  /// Whether the journal has to be made: nothing is there, or an empty file.
  ///
  /// Narrows the permissions of what is there.
  func isMissing() throws(JournalStoreError) -> Bool {
    var status = stat()
    guard lstat(path, &status) == 0 else {
      guard errno == ENOENT else { throw StoreFile.error(errno, path, "look at it") }
      try refuseOrphan()
      return true
    }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw JournalStoreError(
        .corrupt, "\(path) is no file, and was left as it is. Give the \(kind) a path of its own.")
    }
    guard status.st_nlink == 1 else {
      throw JournalStoreError(
        .corrupt, "\(path) has a second name (a hard link), under which it could be written too. Remove one.")
    }
    guard status.st_size == 0 else { return false }
    try refuseOrphan()
    return true
  }

  /// A log whose database is gone may hold the only copy of something.
  private func refuseOrphan() throws(JournalStoreError) {
    for name in [path + "-wal", path + "-journal"] {
      var status = stat()
      guard lstat(name, &status) == 0, status.st_size > 0 else { continue }
      throw JournalStoreError(
        .corrupt, "\(name) is there, but its database is not. Put \(path) back, or move the rest away too.")
    }
  }

  /// Makes the files readable by their owner alone.
  func narrow() throws(JournalStoreError) {
    for name in [path, path + "-wal", path + "-shm"] {
      var status = stat()
      guard lstat(name, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_mode & 0o077 != 0 else {
        continue
      }
      guard chmod(name, 0o600) == 0 else {
        throw StoreFile.error(errno, name, "make it private to its owner")
      }
    }
  }

  /// The path at which a new journal is made before it takes its place.
  var draft: String { path + "-new" }

  /// Makes an empty private file for the draft, in place of one that was left over.
  func beginDraft() throws(JournalStoreError) {
    for name in [draft, draft + "-journal"] { _ = unlink(name) }
    let descriptor = open(draft, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw StoreFile.error(errno, draft, "make it") }
    defer { _ = close(descriptor) }
    // Under any mask.
    guard fchmod(descriptor, 0o600) == 0 else { throw StoreFile.error(errno, draft, "make it private") }
  }

  /// Lets the draft take its place, for good.
  func finishDraft() throws(JournalStoreError) {
    // Empty ones that a removed journal left.
    for name in [path + "-wal", path + "-shm", path + "-journal"] { _ = unlink(name) }
    guard rename(draft, path) == 0 else { throw StoreFile.error(errno, path, "make it") }
    let folder = open(StoreFile.folder(of: path), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard folder >= 0 else { return }
    defer { _ = close(folder) }
    guard fsync(folder) == 0 || errno == EINVAL else {
      throw StoreFile.error(errno, path, "secure its name on disk")
    }
  }

  /// Removes a draft that did not become anything.
  func dropDraft() {
    for name in [draft, draft + "-journal"] { _ = unlink(name) }
  }

  // MARK: Paths

  /// The path without links; of a file that is not there, that of its folder and its name.
  static func resolve(_ path: String, of kind: StaticString = "journal") throws(JournalStoreError) -> String {
    guard !path.isEmpty, !path.utf8.contains(0), path.utf8.last != UInt8(ascii: "/") else {
      throw JournalStoreError(
        .system, "\"\(path)\" is no path of a file. Name a file in a folder that is there.")
    }
    if let whole = real(path) { return whole }
    guard errno == ENOENT else { throw error(errno, path, "find it") }
    var status = stat()
    guard lstat(path, &status) != 0 else {
      throw JournalStoreError(.corrupt, "\(path) is a link to nothing. Remove it, or name the file itself.")
    }
    guard let folder = real(folder(of: path)) else {
      throw JournalStoreError(
        .system,
        "There is no folder for the \(kind) \(path): \(String(cString: strerror(errno))). Make it first.")
    }
    let name = path.split(separator: "/").last.map(String.init) ?? path
    return folder == "/" ? "/" + name : folder + "/" + name
  }

  private static func real(_ path: String) -> String? {
    guard let found = realpath(path, nil) else { return nil }
    defer { free(found) }
    return String(cString: found)
  }

  private static func folder(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  private static func error(_ number: Int32, _ path: String, _ what: String) -> JournalStoreError {
    let cause = String(cString: strerror(number))
    switch number {
    case EACCES, EPERM, EROFS:
      return JournalStoreError(
        .readOnly, "\(path): \(cause) on the attempt to \(what). Give this user the right to write there.")
    case ENOSPC, EDQUOT:
      return JournalStoreError(.full, "\(path): \(cause) on the attempt to \(what). Free some space.")
    default:
      return JournalStoreError(
        .system, "\(path): \(cause) on the attempt to \(what). Look at disk and folder.")
    }
  }
}
