import { connect, createServer, type Server, type Socket } from 'node:net'
import { Direction, type LinkOptions } from './link.ts'
import { addressOf, type Endpoint } from './units.ts'

export interface RelayOptions extends LinkOptions {
  listen: Endpoint
  /** The server that clients of the relay reach through the link. */
  to: Endpoint
  /** A connection was cut, as `cut` had asked for. `withheld`: see `Flow.cutAfter`. */
  onCut: (withheld: number) => void
}

/** `requests` go to the server, `replies` come from it. */
export type Way = 'requests' | 'replies'

/**
 * Forwards connections as a distant link would. Opening one takes a round trip: the client's first
 * bytes leave when the server's consent has come back.
 */
export class Relay {
  readonly #options: RelayOptions
  readonly #link: Record<Way, Direction>
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  /** Connections that have reached the server and are open, by the server's side of them. */
  readonly #flows = new Map<Socket, Record<Way, Flow>>()

  constructor(options: RelayOptions) {
    this.#options = options
    this.#link = { requests: new Direction(options), replies: new Direction(options) }
    this.#server = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true })
    this.#server.on('connection', (client) => this.#accept(client))
  }

  /**
   * @returns where it listens, with the port that the system chose.
   * @throws what `node:net` throws when it cannot, such as EADDRINUSE.
   */
  async listen(): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#server.once('error', reject)
    this.#server.listen(this.#options.listen, resolve)
    await promise
    return addressOf(this.#server)
  }

  /** The number of open connections that have reached the server. */
  get connections(): number {
    return [...this.#flows.keys()].filter((server) => !server.destroyed).length
  }

  /** Resets every open connection, at both ends, after `bytes` more have come through that way. */
  cut(way: Way, bytes: number): void {
    for (const flows of this.#flows.values()) flows[way].cutAfter(bytes)
  }

  /** Lets nothing arrive at either end until it is called with false. */
  stall(stalled: boolean): void {
    this.#link.requests.stall(stalled)
    this.#link.replies.stall(stalled)
  }

  /** Resets every connection and stops listening. */
  async close(): Promise<void> {
    this.stall(true)
    for (const socket of this.#sockets) reset(socket)
    await this.#server[Symbol.asyncDispose]()
  }

  #accept(client: Socket): void {
    const { requests, replies } = this.#link
    const { to, onCut } = this.#options
    this.#keep(client)
    requests.send(0, () => {
      const server = connect({ ...to, allowHalfOpen: true, noDelay: true })
      this.#keep(server)
      const cut = (withheld: number) => {
        reset(client)
        reset(server)
        onCut(withheld)
      }
      const refuse = () => replies.send(0, () => reset(client))
      server.once('error', refuse)
      server.once('connect', () => {
        server.off('error', refuse)
        this.#flows.set(server, {
          requests: new Flow(client, server, { link: requests, onCut: cut }),
          replies: new Flow(server, client, { link: replies, onCut: cut }),
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
 * while as much is in flight as the direction's window allows, including data that the sink has not
 * taken.
 */
class Flow {
  /** Bytes until the cut. */
  #left = Number.POSITIVE_INFINITY
  readonly #onCut: (withheld: number) => void

  constructor(
    source: Socket,
    sink: Socket,
    { link, onCut }: { link: Direction; onCut: (withheld: number) => void },
  ) {
    this.#onCut = onCut
    let inFlight = 0
    const send = (bytes: number, deliver: () => void) =>
      link.send(bytes, () => {
        if (this.#left > 0 && !sink.destroyed) deliver()
      })
    source.on('data', (chunk: Buffer) => {
      for (let start = 0; start < chunk.length; start += link.partBytes) {
        const part = chunk.subarray(start, start + link.partBytes)
        send(part.length, () => {
          const withheld = part.length - this.#left
          if (withheld >= 0) {
            sink.write(part.subarray(0, this.#left), () => onCut(withheld))
            this.#left = 0
            return
          }
          this.#left -= part.length
          sink.write(part, () => {
            inFlight -= part.length
            if (source.isPaused() && inFlight <= link.windowBytes / 2) source.resume()
          })
        })
      }
      inFlight += chunk.length
      if (inFlight >= link.windowBytes) source.pause()
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
  cutAfter(bytes: number): void {
    this.#left = Math.min(bytes, this.#left)
    if (bytes === 0) this.#onCut(0)
  }
}
