public import BluetoothWire
internal import Relink

// What a test does to a peripheral.
extension VirtualPeripheral {
  // MARK: - Misbehaviour

  /// Makes the peripheral treat some requests in another way than the specification asks.
  ///
  /// Where several reactions match a request, the one that was asked for first is played.
  ///
  /// - Parameters:
  ///   - pattern: The requests.
  ///   - reaction: What happens to them.
  ///   - times: How often; nil until ``reactProperly()``.
  public func react(to pattern: RequestPattern, with reaction: ServerReaction, times: Int? = nil) {
    guard times ?? 1 > 0 else { return }
    perform { server in
      server.rules.append(GATTServer.Rule(pattern: pattern, reaction: reaction, times: times))
      return []
    }
  }

  /// Forgets all reactions that were asked for; what is delayed already still comes.
  public func reactProperly() {
    perform { server in
      server.rules = []
      return []
    }
  }

  /// The server's receive MTU in bytes, for exchanges from now on.
  public var mtuLimit: Int {
    get { read { $0.mtuLimit } }
    set {
      perform { server in
        server.mtuLimit = newValue
        return []
      }
    }
  }

  // MARK: - Links and clients

  /// Ends all links from the peripheral's side.
  ///
  /// - Parameter reason: What the central is told.
  public func terminate(_ reason: HCIErrorCode = .remoteUserTerminatedConnection) {
    perform { server in
      server.linksInOrder.compactMap { id in
        guard let state = server.links[id], !state.isTerminated else { return nil }
        server.links[id]?.isTerminated = true
        return .terminate(state.link, reason)
      }
    }
  }

  /// Bonds with a client: its subscriptions outlive links, and its links are encrypted with authenticated keys from their
  /// start.
  ///
  /// Keys that a central has to use, and can lose, are the radio's: see ``VirtualRadio/bond(_:level:)``.
  ///
  /// - Parameter client: The name of the central.
  public func bond(with client: String) {
    perform { server in
      guard server.bonds[client] == nil else { return [] }
      var bond = GATTServer.Bond()
      for id in server.linksInOrder where server.links[id]?.link.client == client {
        bond.configurations = server.links[id]?.configurations ?? [:]
        let before = server.links[id]?.security ?? .none
        server.links[id]?.security = max(before, .authenticated)
      }
      server.bonds[client] = bond
      return []
    }
  }

  /// Forgets a bonded client with all that was kept of it; a link that is up keeps its state.
  ///
  /// - Parameter client: The name of the central.
  public func eraseBond(with client: String) {
    perform { server in
      server.bonds[client] = nil
      return []
    }
  }

  /// Secures the links of a client that are up.
  ///
  /// - Parameters:
  ///   - client: The name of the central; nil for all of them.
  ///   - level: How far.
  public func secure(_ client: String? = nil, _ level: VirtualSecurity) {
    perform { server in
      for id in server.linksInOrder where client == nil || server.links[id]?.link.client == client {
        server.links[id]?.security = level
      }
      return []
    }
  }

  // MARK: - The attribute table

  /// The services as declared, with their present handles where these are fixed, the generic ones included.
  public var services: [VirtualService] { read { $0.services.map(\.service) } }

  /// What the Database Hash characteristic says now (Core Specification Vol 3 Part G 7.3).
  public var databaseHash: [UInt8] { read { $0.table.hash } }

  /// Inserts a service in front of those of the application, so that their handles move up.
  ///
  /// Clients that asked for it are told by a Service Changed indication, bonded ones on their next link. Values,
  /// subscriptions and counters stay with their characteristics.
  ///
  /// - Parameters:
  ///   - service: The service.
  ///   - distance: How far handles move that are fixed; nil for as many as the new service takes.
  public func insertInFront(_ service: VirtualService, movingBy distance: UInt16? = nil) {
    perform { server in
      let index = server.services.prefix { $0.service.isGeneric }.count
      return server.insert(service, at: index, distance: distance)
    }
  }

  /// Adds a service behind all others.
  ///
  /// - Parameter service: The service.
  public func append(_ service: VirtualService) {
    perform { server in server.insert(service, at: server.services.count, distance: nil) }
  }

  /// Removes the services of a UUID; the handles of the others stay where they are fixed.
  ///
  /// - Parameter uuid: The UUID.
  public func remove(_ uuid: BluetoothUUID) {
    perform { server in server.rebuild(server.services.filter { $0.service.uuid != uuid }) }
  }

  /// Takes other services in place of those of the application, as a new firmware does: values start anew.
  ///
  /// - Parameter services: The services.
  public func replaceServices(with services: [VirtualService]) {
    perform { server in
      let generic = Array(server.services.prefix { $0.service.isGeneric })
      return server.rebuild(generic + services.map { server.adopt($0) })
    }
  }
}

extension VirtualService {
  /// Whether it is one of the two services of every device, which keep their handles.
  fileprivate var isGeneric: Bool { uuid == .genericAccess || uuid == .genericAttribute }
}

extension GATTServer {
  /// The links in the order in which they came up, so that a run can be repeated.
  var linksInOrder: [ObjectIdentifier] {
    links.keys.sorted { (links[$0]?.link.number ?? 0) < (links[$1]?.link.number ?? 0) }
  }

  func entry(_ name: Characteristic) -> ServerTable.Entry? {
    table.key(of: name).flatMap { table.entries[$0] }
  }
}

// What a platform sees that knows handles and hides them.
extension VirtualPeripheral {
  /// The services as a link shows them, without handles.
  var discovered: [DiscoveredService] { read { $0.table.discovered } }

  /// The characteristic whose value has this handle now.
  func name(at handle: UInt16) -> Characteristic? {
    read { server in
      server.table.key(at: handle).flatMap { server.table.entries[$0] }.flatMap {
        $0.valueHandle == handle ? $0.name : nil
      }
    }
  }

  /// What a characteristic allows.
  func properties(of name: Characteristic) -> CharacteristicProperties {
    read { $0.entry(name)?.declared.properties ?? [] }
  }
}
