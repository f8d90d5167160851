import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { Direction, type LinkOptions } from './link.ts'
import { addressOf, type Endpoint } from './units.ts'

export interface RelayOptions extends LinkOptions {
  listen: Endpoint
  /** The server behind the link. */
  to: Endpoint
}

/**
 * Called when a connection is cut. `withheld`: the bytes not delivered of the part that contained the last delivered
 * byte (0: the cut may be between two replies).
 */
type OnCut = (withheld: number) => void

/** `requests`: to the server; `replies`: from the server. */
type Way = 'requests' | 'replies'

/**
 * A transfer over the link: sent at `atMs`, arrived at `untilMs` (`performance.now()`). A close is reported once, for the
 * end that closes first.
 */
export interface Traffic {
  kind: 'connect' | 'close' | Way
  /** Number of the connection, from 1. */
  connection: number
  atMs: number
  untilMs: number
  /** Absent when a connection opens or closes. */
  data?: Buffer
}

/** Called when the transfer has arrived. */
type OnTraffic = (traffic: Traffic) => void

/**
 * Forwards connections like a distant link. Opening a connection takes a round trip: the client's first bytes are
 * forwarded when the server's acceptance has arrived.
 *
 * @throws the error of `node:net` if it cannot listen, such as EADDRINUSE.
 */
export async function openRelay(options: RelayOptions, onCut: OnCut, onTraffic?: OnTraffic) {
  const link = { requests: new Direction(options), replies: new Direction(options) }
  const sockets = new Set<Socket>()
  /** The replies of open connections that have reached the server, by the socket to the server. */
  const replies = new Map<Socket, Flow>()
  let accepted = 0

  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {}) // its flow forwards the error
    socket.once('close', () => {
      sockets.delete(socket)
      replies.delete(socket)
    })
  }
  const reach = (client: Socket, acceptedAt: number) => {
    const observe = onTraffic && observer(++accepted, onTraffic)
    const server = connect({ ...options.to, allowHalfOpen: true, noDelay: true })
    keep(server)
    const cut: OnCut = (withheld) => {
      reset(client)
      reset(server)
      onCut(withheld)
    }
    const refuse = () => link.replies.send(0, () => reset(client))
    server.once('error', refuse)
    server.once('connect', () => {
      server.off('error', refuse)
      const flow = (way: Way) => ({ link: link[way], onCut: cut, observe: observe?.[way] })
      new Flow(client, server, flow('requests'))
      replies.set(server, new Flow(server, client, flow('replies')))
      link.replies.send(0, () => {
        observe?.connect(acceptedAt)
        client.resume()
      })
    })
  }
  const listener = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true })
  listener.on('connection', (client) => {
    keep(client)
    const acceptedAt = performance.now()
    link.requests.send(0, () => reach(client, acceptedAt))
  })
  await once(listener.listen(options.listen), 'listening')

  /** With true, nothing arrives at either end until the next call with false. */
  const stall = (stalled: boolean) => {
    link.requests.stall(stalled)
    link.replies.stall(stalled)
  }
  return {
    /** The address on which it listens, with the actual port. */
    address: addressOf(listener),
    /** The number of open connections that have reached the server. */
    connections: () => replies.size,
    /** Resets every open connection, at both ends, after `bytes` more of its replies. */
    cut(bytes: number) {
      for (const flow of replies.values()) flow.cutAfter(bytes)
    },
    stall,
    /** Resets every connection and stops listening. */
    async close() {
      stall(true)
      for (const socket of sockets) reset(socket)
      await listener[Symbol.asyncDispose]()
    },
  }
}

/** Called when data (or, without data, the end) that was sent at `atMs` has arrived. */
type Observe = (atMs: number, data?: Buffer) => void

function observer(connection: number, onTraffic: OnTraffic) {
  let closed = false
  const observe = (kind: Traffic['kind'], atMs: number, data?: Buffer) =>
    onTraffic({ kind, connection, atMs, untilMs: performance.now(), ...(data && { data }) })
  const along = (way: Way): Observe => {
    return (atMs, data) => {
      if (data) observe(way, atMs, data)
      else if (!closed) observe('close', atMs)
      closed ||= data === undefined
    }
  }
  return {
    connect: (atMs: number) => observe('connect', atMs),
    requests: along('requests'),
    replies: along('replies'),
  }
}

/** Closes a connection abruptly: by a reset if the transport has one (TCP). */
function reset(socket: Socket): void {
  if (socket.destroyed) return
  if (socket.remoteFamily === undefined) socket.destroy()
  else socket.resetAndDestroy()
}

/**
 * One direction of a connection: forwards bytes, the end and a reset, in order. Stops reading while the window is full;
 * data that the sink has not accepted counts, too.
 */
class Flow {
  /** Bytes left until the cut. */
  #left = Number.POSITIVE_INFINITY
  readonly #onCut: OnCut

  constructor(
    source: Socket,
    sink: Socket,
    { link, onCut, observe }: { link: Direction; onCut: OnCut; observe?: Observe | undefined },
  ) {
    this.#onCut = onCut
    let inFlight = 0
    const send = (bytes: number, deliver: () => void) =>
      link.send(bytes, () => {
        if (this.#left > 0 && !sink.destroyed) deliver()
      })
    source.on('data', (chunk: Buffer) => {
      const atMs = performance.now()
      for (let start = 0; start < chunk.length; start += link.partBytes) {
        const part = chunk.subarray(start, start + link.partBytes)
        send(part.length, () => {
          const withheld = part.length - this.#left
          this.#left = Math.max(0, -withheld)
          if (withheld >= 0) {
            sink.write(part.subarray(0, part.length - withheld), () => onCut(withheld))
            return
          }
          observe?.(atMs, part)
          sink.write(part, () => {
            inFlight -= part.length
            if (source.isPaused() && inFlight <= link.windowBytes / 2) source.resume()
          })
        })
      }
      inFlight += chunk.length
      if (inFlight >= link.windowBytes) source.pause()
    })
    source.on('end', () => {
      const atMs = performance.now()
      send(0, () => {
        observe?.(atMs)
        sink.end()
      })
    })
    source.on('error', () => {
      send(0, () => {
        if (sink.writableEnded) reset(sink)
        else sink.write('', () => reset(sink)) // after all earlier writes
      })
    })
  }

  /** Cuts the connection after `bytes` more. Of several calls, the earliest cut counts. */
  cutAfter(bytes: number): void {
    this.#left = Math.min(bytes, this.#left)
    if (bytes === 0) this.#onCut(0)
  }
}
