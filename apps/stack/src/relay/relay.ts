import { connect, createServer, type Server, type Socket } from 'node:net'
import { boundEndpoint, type Endpoint } from './endpoint.ts'
import { Flow, reset } from './flow.ts'
import { Link, type LinkOptions, type Way } from './link.ts'

export interface RelayOptions extends LinkOptions {
  listen: Endpoint
  /** The server that clients of the relay reach through the link. */
  to: Endpoint
  /** A connection was cut, as `cut` had asked for. `withheld`: see `Flow.cutAfter`. */
  onCut?: (withheld: number) => void
}

interface Connection {
  readonly client: Socket
  readonly server: Socket
  readonly flows: Record<Way, Flow>
}

/**
 * Passes connections on as a distant link would. Opening one costs a round trip: the client's first
 * bytes leave when the server's consent has come back.
 */
export class Relay {
  readonly #options: RelayOptions
  readonly #link: Link
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #connections = new Set<Connection>()

  private constructor(options: RelayOptions) {
    this.#options = options
    this.#link = new Link(options)
    this.#server = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true })
    this.#server.on('connection', (client) => this.#accept(client))
  }

  /** @throws what `node:net` throws when it cannot listen there, such as EADDRINUSE. */
  static async listen(options: RelayOptions): Promise<Relay> {
    const relay = new Relay(options)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    relay.#server.once('error', reject)
    relay.#server.listen(options.listen, resolve)
    await promise
    return relay
  }

  /** Where it listens, the port included that the system chose. */
  get endpoint(): Endpoint {
    return boundEndpoint(this.#server.address() ?? '')
  }

  /** Connections that have reached the server and are open. */
  get connections(): number {
    return [...this.#connections].filter(({ client }) => !client.destroyed).length
  }

  /** Nothing arrives at either end until `resume`; what is sent waits, and holds its sender up. */
  stall(): void {
    this.#link.requests.stall()
    this.#link.replies.stall()
  }

  resume(): void {
    this.#link.requests.resume()
    this.#link.replies.resume()
  }

  /** Resets every connection of now, at both ends, once `bytes` more have come through it that way. */
  cut(way: Way, bytes: number): void {
    for (const { client, server, flows } of [...this.#connections]) {
      flows[way].cutAfter(bytes, (withheld) => {
        reset(client)
        reset(server)
        this.#options.onCut?.(withheld)
      })
    }
  }

  /** Resets every connection and stops listening. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => void this.#server.close(() => resolve()))
    this.#link.close()
    for (const socket of this.#sockets) reset(socket)
    await closed
  }

  #accept(client: Socket): void {
    this.#keep(client)
    this.#link.requests.send(0, () => {
      const server = connect({ ...this.#options.to, allowHalfOpen: true, noDelay: true })
      this.#keep(server)
      const refuse = () => this.#link.replies.send(0, () => reset(client))
      server.once('error', refuse)
      server.once('connect', () => {
        server.off('error', refuse)
        this.#join(client, server)
        this.#link.replies.send(0, () => client.resume())
      })
    })
  }

  #join(client: Socket, server: Socket): void {
    const { requests, replies } = this.#link
    const connection: Connection = {
      client,
      server,
      flows: {
        requests: new Flow(client, server, requests),
        replies: new Flow(server, client, replies),
      },
    }
    this.#connections.add(connection)
    server.once('close', () => this.#connections.delete(connection))
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('error', () => {}) // a flow passes it on
    socket.once('close', () => this.#sockets.delete(socket))
  }
}
