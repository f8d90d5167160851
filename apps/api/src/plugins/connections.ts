import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import fp from 'fastify-plugin'
import { ApiError } from '../errors.ts'
import type { Limits } from '../limits.ts'

interface Connection {
  /**
   * In flight: not yet handed to the operating system. Node sends them in order. A list, because there is
   * usually one, and a set has to give each a hash.
   */
  readonly responses: ServerResponse[]
  /** Bytes that the operating system had taken at the last look. */
  taken: number
}

const LOOK_EVERY_MS = 20

/** The handler has the whole request and has not answered it yet. */
const isWaiting = (response: ServerResponse) => response.req.complete && !response.headersSent

/**
 * How many bytes the operating system has taken of what was written. `bytesWritten` and `writableLength` do
 * not say it: they change when a whole write is done, which can be a megabyte. Node has no public name for
 * it; the timeout of its sockets asks the same.
 */
function bytesTaken(socket: Socket): number {
  const { _handle: handle } = socket as {
    _handle?: { bytesWritten: number; writeQueueSize: number } | null
  }
  return handle ? handle.bytesWritten - handle.writeQueueSize : 0
}

/**
 * Keeps a client that does not read its responses from holding a connection or memory, or from delaying a
 * shutdown.
 *
 * - Beyond `pipelinedRequests` in flight on one connection a request is rejected with 429. Node bounds how
 *   many bytes of responses are queued: it then stops reading from the connection.
 * - A connection is closed if its responses made no progress for `stalledMs`. The timeout of the socket
 *   cannot be used, because reading a request restarts it.
 * - During shutdown, the connections that are left are closed `flushMs` after the last request was answered.
 *   Otherwise one such client, or one that sent half a request, would keep the process from ending.
 */
export const connectionsPlugin = fp<Limits>(
  async (app, { pipelinedRequests, stalledMs, flushMs }) => {
    const connections = new Map<Socket, Connection>()
    app.server.on('connection', (socket: Socket) => {
      connections.set(socket, { responses: [], taken: -1 })
      // Prepended: lists of listeners that Node extends at the end would live as long as connections, so V8
      // would allocate each request's among the long-lived objects, and keep a quarter of all garbage
      // until a full collection (allocation-site pretenuring; docs/other-clients.md).
      socket.prependListener('close', () => connections.delete(socket))
    })

    const refusal = new ApiError(
      'API_TOO_MANY_REQUESTS',
      `more than ${pipelinedRequests} requests are in flight on this connection`,
    )
    app.addHook('onRequest', ({ raw: { socket } }, { raw: response }, done) => {
      const inFlight = connections.get(socket)?.responses.push(response) ?? 0
      done(inFlight > pipelinedRequests ? refusal : undefined)
    })
    app.addHook('onResponse', ({ raw: { socket } }, { raw: response }, done) => {
      const { responses = [] } = connections.get(socket) ?? {}
      if (responses[0] === response) responses.shift()
      else if (responses.includes(response)) responses.splice(responses.indexOf(response), 1)
      done()
    })

    const look = setInterval(() => {
      for (const [socket, connection] of connections) {
        if (socket.writableLength === 0) continue
        const taken = bytesTaken(socket)
        if (taken === connection.taken) socket.destroy()
        connection.taken = taken
      }
    }, stalledMs).unref()
    app.addHook('onClose', async () => clearInterval(look))

    async function cutWhenAnswered(): Promise<void> {
      let cutAt = performance.now() + flushMs
      while (connections.size > 0) {
        const now = performance.now()
        const waiting = connections.values().some(({ responses }) => responses.some(isWaiting))
        if (waiting) cutAt = now + flushMs
        else if (now >= cutAt) {
          app.log.warn({ connections: connections.size }, 'closing connections that are still open')
          for (const socket of connections.keys()) socket.destroy()
        }
        await delay(LOOK_EVERY_MS)
      }
    }
    // Not awaited: Fastify bounds the time of this hook, and then waits for the connections.
    app.addHook('preClose', (done) => {
      void cutWhenAnswered()
      done()
    })
  },
  { name: 'connections', dependencies: ['errors', 'readiness'] },
)
