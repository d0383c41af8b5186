internal import Glibc

/// The program that the lab's scenarios run inside the machine: sessions over the kernel's L2CAP sockets.
@main
enum Main {
  private static let usage = """
    usage: relink-lab losses|crossing|killing|silence|abandonment|contract|in-doubt|reasons [N] [OPTION…]
           relink-lab pairing [beside-daemon] [--unprivileged]
           relink-lab adapter-life|beside-bluetoothd [PART…] [OPTION…]
           relink-lab journal FOLDER LEDGER [last]
    options: --unprivileged, --without-controller, --without-management, --keep-on
    """

  static func main() async {
    let words = CommandLine.arguments.dropFirst().filter { !$0.hasPrefix("--") }
    do {
      let lab = try Lab()
      exit(try await run(words, in: lab) == 0 ? 0 : 1)
    } catch {
      say("FAILED  relink-lab \(words.joined(separator: " ")): \(error)")
      exit(1)
    }
  }

  private static func run(_ words: [String], in lab: Lab) async throws -> Int {
    let count = words.count > 1 ? Int(words[1]) : nil
    switch words.first {
    case "losses":
      return try await Losses(lab, count: count ?? 200).run()
    case "crossing":
      return try await Crossing(lab, count: count ?? 100).run()
    case "killing":
      return try await Killing(lab, count: count ?? 100).run()
    case "silence":
      return try await Silence(lab, count: count ?? 10).run()
    case "abandonment":
      return try await Abandonment(lab, count: count ?? 30).run()
    case "contract":
      return try await Contract(lab).run()
    case "in-doubt":
      return try await InDoubt(lab).run()
    case "pairing":
      let part: PairingScenario.Part =
        if Lab.options.contains("--unprivileged") {
          .unprivileged
        } else if words.dropFirst().first == "beside-daemon" {
          .besideDaemon
        } else {
          .alone
        }
      return try await PairingScenario(lab).run(part)
    case "reasons":
      return try await Reasons(lab).run()
    case "adapter-life":
      return try await AdapterLife(lab, parts: Array(words.dropFirst())).run()
    case "beside-bluetoothd":
      return try await BesideDaemon(lab, parts: Array(words.dropFirst())).run()
    case "journal" where words.count > 2:
      return try await PowerLoss(lab, folder: words[1], ledger: words[2]).run(isLast: words.count > 3)
    case "victim":
      // What the programs above start and kill.
      let outstanding = words.count > 1 ? Outstanding(rawValue: words[1]) : nil
      let seed = words.count > 2 ? Int(words[2]) : nil
      try await Victim(lab, leaving: outstanding, seed: seed ?? 0).run()
      return 0
    default:
      say(usage)
      exit(2)
    }
  }
}
