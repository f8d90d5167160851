import { AsyncResource } from 'node:async_hooks'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import fp from 'fastify-plugin'
import { ApiError } from '../errors.ts'
import type { Limits } from '../limits.ts'

interface Connection {
  /**
   * Those not yet handed to the operating system, in the order of their requests. Usually there is one, so an
   * array is faster than a set.
   */
  readonly responses: ServerResponse[]
  /** Bytes that the operating system had accepted at the last check. */
  accepted: number
}

const SHUTDOWN_CHECK_MS = 20

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS'])

const isSafe = ({ req }: ServerResponse) => SAFE_METHODS.has(req.method ?? '')

/**
 * Bytes of the responses that the operating system has accepted. `bytesWritten` and `writableLength` change
 * only when a whole write is done, which can be a megabyte. Node has no public API for this; its socket
 * timeout uses the same fields.
 */
function bytesAccepted(socket: Socket): number {
  const { _handle: handle } = socket as {
    _handle?: { bytesWritten: number; writeQueueSize: number } | null
  }
  return handle ? handle.bytesWritten - handle.writeQueueSize : 0
}

/**
 * Protects the process from clients that do not read their responses: they cannot hold a connection or
 * memory, or delay a shutdown.
 *
 * - Requests above `pipelinedRequests` in flight on one connection are rejected with 429. Node itself stops
 *   reading from a connection with too many bytes of queued responses.
 * - A pipelined request waits until those before it are answered, unless all of them are safe (RFC 9112, 9.3.2).
 *   Otherwise `GET /me` could still succeed behind `POST /logout`. If the connection closes, it is dropped.
 * - A connection is closed if its responses made no progress for `stalledMs`. The socket timeout cannot be
 *   used, because reading a request restarts it.
 * - During shutdown, the remaining connections are closed `flushMs` after the last request was answered.
 *   Otherwise such a client, or one that sent half a request, would keep the process alive.
 */
export const connectionsPlugin = fp<Limits>(
  async (app, { pipelinedRequests, stalledMs, flushMs }) => {
    const connections = new Map<Socket, Connection>()
    app.server.on('connection', (socket: Socket) => {
      connections.set(socket, { responses: [], accepted: -1 })
      // Not `on`: with it, V8 would keep each request until a full garbage collection (docs/other-clients.md).
      socket.prependListener('close', () => connections.delete(socket))
    })

    /** Starts a request that waits for those before it on its connection. Key: its response. */
    const starts = new WeakMap<ServerResponse, () => void>()

    const tooMany = new ApiError(
      'API_TOO_MANY_REQUESTS',
      `more than ${pipelinedRequests} requests are in flight on this connection`,
    )
    app.addHook('onRequest', ({ raw: { socket } }, { raw: response }, done) => {
      const { responses = [] } = connections.get(socket) ?? {}
      const inFlight = responses.push(response)
      if (inFlight > pipelinedRequests) done(tooMany)
      else if (inFlight > 1 && !responses.every(isSafe)) {
        // The function will be called by another request: bind the context, which has the span of this one.
        starts.set(
          response,
          AsyncResource.bind(() => done()),
        )
      } else done()
    })
    app.addHook('onResponse', ({ raw: { socket } }, { raw: response }, done) => {
      // After `connection: close` no other request can be answered: the response stays, and those behind it wait.
      if (socket.writable) answered(connections.get(socket)?.responses ?? [], response)
      done()
    })

    function answered(responses: ServerResponse[], response: ServerResponse): void {
      if (responses[0] === response) responses.shift()
      else if (responses.includes(response)) responses.splice(responses.indexOf(response), 1)
      if (responses.length > 0) startNext(responses)
    }

    /** Starts the first request, or all safe ones before the first that is not. */
    function startNext(responses: readonly ServerResponse[]): void {
      const unsafe = responses.findIndex((response) => !isSafe(response))
      for (const response of responses.slice(0, unsafe < 0 ? undefined : Math.max(1, unsafe))) {
        const start = starts.get(response)
        starts.delete(response)
        start?.()
      }
    }

    const stallCheck = setInterval(() => {
      for (const [socket, connection] of connections) {
        if (socket.writableLength === 0) continue
        const accepted = bytesAccepted(socket)
        if (accepted === connection.accepted) socket.destroy()
        connection.accepted = accepted
      }
    }, stalledMs).unref()
    app.addHook('onClose', async () => clearInterval(stallCheck))

    /** The request is complete, has started, and its response has not begun. */
    const isWaiting = (response: ServerResponse) =>
      response.req.complete && !response.headersSent && !starts.has(response)

    async function closeWhenAnswered(): Promise<void> {
      let closeAt = performance.now() + flushMs
      while (connections.size > 0) {
        const now = performance.now()
        const waiting = connections.values().some(({ responses }) => responses.some(isWaiting))
        if (waiting) closeAt = now + flushMs
        else if (now >= closeAt) {
          app.log.warn({ connections: connections.size }, 'shutdown: closing remaining connections')
          for (const socket of connections.keys()) socket.destroy()
        }
        await delay(SHUTDOWN_CHECK_MS)
      }
    }
    // Not awaited: Fastify limits the duration of this hook, and waits for the connections afterwards.
    app.addHook('preClose', (done) => {
      void closeWhenAnswered()
      done()
    })
  },
  { name: 'connections', dependencies: ['errors', 'readiness'] },
)
