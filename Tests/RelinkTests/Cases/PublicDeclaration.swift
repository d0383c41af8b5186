import Foundation

/// A public function, initialiser or property that is `async`, as the sources declare it.
struct PublicDeclaration: Hashable {
  /// The file that declares it, without its extension, and its name.
  var name: String
  /// Its documentation, in one line.
  var documentation: String

  /// Those of a module of this package, in the order of its files.
  static func all(in module: String) throws -> [PublicDeclaration] {
    let root = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../../Sources/\(module)").standardizedFileURL
    let files = FileManager.default.enumerator(at: root, includingPropertiesForKeys: nil)
    var found: [PublicDeclaration] = []
    while let file = files?.nextObject() as? URL {
      guard file.pathExtension == "swift" else { continue }
      let text = try String(contentsOf: file, encoding: .utf8)
      found += all(in: text, of: file.deletingPathExtension().lastPathComponent)
    }
    return found
  }

  /// Those of one file, laid out as the formatter does it.
  static func all(in text: String, of file: String) -> [PublicDeclaration] {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
      .map { $0.trimmingCharacters(in: .whitespaces) }
      .filter { !$0.hasPrefix("//") || $0.hasPrefix("///") }
    var found: [PublicDeclaration] = []
    var documentation = ""
    var declaration = ""
    for (index, line) in lines.enumerated() {
      let next = index + 1 < lines.count ? lines[index + 1] : ""
      if line.hasPrefix("///") {
        documentation += line.dropFirst(3)
      } else if !declaration.isEmpty || line.split(separator: " ").contains("public") {
        declaration += line + " "
        if goesOn(declaration, before: next) { continue }
        if let name = asyncName(in: declaration) {
          found.append(PublicDeclaration(name: "\(file).\(name)", documentation: documentation))
        }
        declaration = ""
        documentation = ""
      } else if !line.hasPrefix("@") {
        documentation = ""
      }
    }
    return found
  }

  /// Whether the next line belongs to the declaration: its parameters are not closed, or what it is like stands there.
  private static func goesOn(_ declaration: String, before next: String) -> Bool {
    let depth = declaration.reduce(0) { $0 + ($1 == "(" ? 1 : $1 == ")" ? -1 : 0) }
    if depth != 0 { return true }
    if declaration.hasSuffix("{ ") { return next.hasPrefix("get async") }
    return ["async", "throws", "->", "where", "{"].contains { next.hasPrefix($0) }
  }

  /// The name in a declaration of something that is `async` itself, and does not only take what is.
  private static func asyncName(in declaration: String) -> String? {
    let words = declaration.split(separator: " ")
    if declaration.contains("get async") {
      guard let index = words.firstIndex(of: "var"), index + 1 < words.count else { return "subscript" }
      return String(words[index + 1].prefix { $0.isLetter })
    }
    let signature =
      declaration.components(separatedBy: "func ").dropFirst().first
      ?? declaration.range(of: "init").map { String(declaration[$0.lowerBound...]) }
    guard let signature else { return nil }
    var depth = 0
    for index in signature.indices {
      if signature[index] == "(" { depth += 1 }
      guard signature[index] == ")" else { continue }
      depth -= 1
      guard depth == 0 else { continue }
      let rest = signature[signature.index(after: index)...]
      return rest.hasPrefix(" async") ? String(signature.prefix { $0.isLetter }) : nil
    }
    return nil
  }
}
