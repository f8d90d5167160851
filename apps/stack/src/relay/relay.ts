import { connect, createServer, type Server, type Socket } from 'node:net'
import { type Direction, Link, type LinkOptions, type Way } from './link.ts'
import { boundEndpoint, type Endpoint } from './units.ts'

export interface RelayOptions extends LinkOptions {
  listen: Endpoint
  /** The server that clients of the relay reach through the link. */
  to: Endpoint
  /** A connection was cut, as `cut` had asked for. `withheld`: see `Flow.cutAfter`. */
  onCut?: (withheld: number) => void
}

/**
 * Forwards connections as a distant link would. Opening one takes a round trip: the client's first
 * bytes leave when the server's consent has come back.
 */
export class Relay {
  readonly #options: RelayOptions
  readonly link: Link
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  /** Connections that have reached the server and are open, by the server's side of them. */
  readonly #flows = new Map<Socket, Record<Way, Flow>>()

  private constructor(options: RelayOptions) {
    this.#options = options
    this.link = new Link(options)
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

  /** Where it listens, with the port that the system chose. */
  get endpoint(): Endpoint {
    return boundEndpoint(this.#server.address() ?? '')
  }

  /** The number of open connections that have reached the server. */
  get connections(): number {
    return [...this.#flows.values()].filter(({ replies }) => !replies.sink.destroyed).length
  }

  /** Resets every open connection, at both ends, after `bytes` more have come through that way. */
  cut(way: Way, bytes: number): void {
    for (const flows of [...this.#flows.values()]) {
      flows[way].cutAfter(bytes, (withheld) => {
        reset(flows.replies.sink)
        reset(flows.requests.sink)
        this.#options.onCut?.(withheld)
      })
    }
  }

  /** Resets every connection and stops listening. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => void this.#server.close(() => resolve()))
    this.link.close()
    for (const socket of this.#sockets) reset(socket)
    await closed
  }

  #accept(client: Socket): void {
    const { requests, replies } = this.link
    this.#keep(client)
    requests.send(0, () => {
      const server = connect({ ...this.#options.to, allowHalfOpen: true, noDelay: true })
      this.#keep(server)
      const refuse = () => replies.send(0, () => reset(client))
      server.once('error', refuse)
      server.once('connect', () => {
        server.off('error', refuse)
        this.#flows.set(server, {
          requests: new Flow(client, server, requests),
          replies: new Flow(server, client, replies),
        })
        replies.send(0, () => client.resume())
      })
    })
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('error', () => {}) // its flow forwards the error
    socket.once('close', () => {
      this.#sockets.delete(socket)
      this.#flows.delete(socket)
    })
  }
}

/** Closes a connection so that its peer notices: by a reset, where there is such a thing (TCP). */
function reset(socket: Socket): void {
  if (socket.destroyed) return
  if (socket.remoteFamily === undefined) socket.destroy()
  else socket.resetAndDestroy()
}

/**
 * One direction of one connection: forwards bytes, the end and a reset, in order. It stops reading
 * while as much is in flight as the direction's window allows, the data that the sink has not taken
 * included.
 */
class Flow {
  readonly sink: Socket
  #cut: { bytes: number; onCut: (withheld: number) => void } | undefined
  #over = false

  constructor(source: Socket, sink: Socket, direction: Direction) {
    this.sink = sink
    const { partBytes, windowBytes } = direction
    let inFlight = 0
    const send = (bytes: number, deliver: () => void) =>
      direction.send(bytes, () => {
        if (!this.#over && !sink.destroyed) deliver()
      })
    source.on('data', (chunk: Buffer) => {
      for (let start = 0; start < chunk.length; start += partBytes) {
        const part = chunk.subarray(start, start + partBytes)
        send(part.length, () => {
          this.#write(part, () => {
            inFlight -= part.length
            if (source.isPaused() && inFlight <= windowBytes / 2) source.resume()
          })
        })
      }
      inFlight += chunk.length
      if (inFlight >= windowBytes) source.pause()
    })
    source.on('end', () => send(0, () => sink.end()))
    source.on('error', () => {
      send(0, () => {
        if (sink.writableEnded) reset(sink)
        else sink.write('', () => reset(sink)) // after what was written before
      })
    })
  }

  /**
   * Delivers `bytes` more and nothing after them, then calls `onCut` with the number of bytes that
   * it withholds of the data that arrived with the last of them (0: the cut may be between two
   * replies). Of several calls the one that is reached first counts.
   */
  cutAfter(bytes: number, onCut: (withheld: number) => void): void {
    this.#cut = { bytes: Math.min(bytes, this.#cut?.bytes ?? bytes), onCut }
    if (bytes > 0) return
    this.#over = true
    onCut(0)
  }

  #write(bytes: Buffer, onWritten: () => void): void {
    const cut = this.#cut
    if (cut && bytes.length >= cut.bytes) {
      this.#over = true
      const withheld = bytes.length - cut.bytes
      this.sink.write(bytes.subarray(0, cut.bytes), () => cut.onCut(withheld))
    } else {
      if (cut) cut.bytes -= bytes.length
      this.sink.write(bytes, onWritten)
    }
  }
}
