import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { Direction, type LinkOptions } from './link.ts'
import { addressOf, type Endpoint } from './units.ts'

export interface RelayOptions extends LinkOptions {
  listen: Endpoint
  /** The server that clients of the relay reach through the link. */
  to: Endpoint
}

/**
 * Called when a connection is cut, with the number of bytes that are withheld of the data that arrived
 * with the last byte delivered (0: the cut may be between two replies).
 */
type OnCut = (withheld: number) => void

/** `requests` go to the server, `replies` come from it. */
export type Way = 'requests' | 'replies'

/**
 * What went over the link, from `atMs` at one end to `untilMs` at the other (`performance.now()`). A close
 * is reported once, by the end that closes first.
 */
export interface Traffic {
  kind: 'connect' | 'close' | Way
  /** Of the connection, from 1. */
  connection: number
  atMs: number
  untilMs: number
  /** None for a connection that opens or closes. */
  data?: Buffer
}

/** Called when it has arrived. */
type OnTraffic = (traffic: Traffic) => void

/**
 * Forwards connections as a distant link would. Opening one takes a round trip: the client's first
 * bytes leave when the server's consent has come back.
 *
 * @throws what `node:net` throws when it cannot listen, such as EADDRINUSE.
 */
export async function openRelay(options: RelayOptions, onCut: OnCut, onTraffic?: OnTraffic) {
  const link = { requests: new Direction(options), replies: new Direction(options) }
  const sockets = new Set<Socket>()
  /** Of the open connections that have reached the server, by the server's side of them. */
  const flows = new Map<Socket, Record<Way, Flow>>()
  let accepted = 0

  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {}) // its flow forwards the error
    socket.once('close', () => {
      sockets.delete(socket)
      flows.delete(socket)
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
      flows.set(server, {
        requests: new Flow(client, server, flow('requests')),
        replies: new Flow(server, client, flow('replies')),
      })
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

  /** Lets nothing arrive at either end until it is called with false. */
  const stall = (stalled: boolean) => {
    link.requests.stall(stalled)
    link.replies.stall(stalled)
  }
  return {
    /** Where it listens, with the port that the system chose. */
    address: addressOf(listener),
    /** The number of open connections that have reached the server. */
    connections: () => flows.size,
    /** Resets every open connection, at both ends, after `bytes` more have come through that way. */
    cut(way: Way, bytes: number) {
      for (const flow of flows.values()) flow[way].cutAfter(bytes)
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

/** Called when something that left at `atMs` has arrived: data, or the end. */
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
        else sink.write('', () => reset(sink)) // after what was written before
      })
    })
  }

  /** Delivers `bytes` more and nothing after them. Of several calls the one reached first counts. */
  cutAfter(bytes: number): void {
    this.#left = Math.min(bytes, this.#left)
    if (bytes === 0) this.#onCut(0)
  }
}
