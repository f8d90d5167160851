import { once } from 'node:events'
import { Server } from 'node:net'
import { setImmediate as loopIteration } from 'node:timers/promises'
import fp from 'fastify-plugin'
import { settlesWithin } from '../settles-within.ts'

declare module 'fastify' {
  interface FastifyInstance {
    readiness: Readiness
  }
}

interface Readiness {
  readonly stopping: boolean
  /**
   * From now on `/readyz` returns 503, so that load balancers send no new requests. Requests that still
   * arrive are answered, with `connection: close`. Does not close the server.
   */
  stop(): void
}

interface ReadinessOptions {
  /** How long an idle connection stays open during shutdown, in milliseconds; see `Limits`. */
  leaveMs: number
  /** Time after which all connections are closed during shutdown, in milliseconds; see `Limits`. */
  finishMs: number
}

/**
 * Accepts the connections that the system has completed while the process was busy: closing the port would reset them.
 * Node accepts one per iteration of its event loop. Ends with two iterations without any, and after `maxMs`.
 */
async function acceptWaiting(server: Server, maxMs: number): Promise<void> {
  const until = performance.now() + maxMs
  let idle = 0
  const onConnection = () => {
    idle = 0
  }
  server.on('connection', onConnection)
  while (idle < 2 && performance.now() < until) {
    idle++
    await loopIteration()
  }
  server.off('connection', onConnection)
}

/**
 * Readiness and graceful closing.
 *
 * When the server closes, it accepts no new connections. Idle connections stay open for `leaveMs`, for a
 * request that is on its way; its response is the last on the connection. `close` of Node's HTTP server would
 * close idle connections at once, and lose that request.
 *
 * After `finishMs` all connections are closed. Otherwise a client that does not read its response, or that sent half a
 * request, would keep the process alive.
 */
export const readinessPlugin = fp<ReadinessOptions>(
  async (app, { leaveMs, finishMs }) => {
    let stopping = false
    const stop = () => {
      stopping = true
      // From now on, the next response of each connection has `connection: close`.
      app.server.maxRequestsPerSocket = 1
    }
    app.decorate('readiness', {
      get stopping() {
        return stopping
      },
      stop,
    })
    app.addHook('preClose', async () => {
      stop()
      if (!app.server.listening) return
      setTimeout(() => app.server.closeAllConnections(), finishMs).unref()
      // For connections whose last request arrived before stop().
      Object.assign(app.server, { keepAliveTimeout: leaveMs, keepAliveTimeoutBuffer: 0 })
      await acceptWaiting(app.server, finishMs / 4)
      const allLeft = once(app.server, 'close')
      Server.prototype.close.call(app.server)
      await settlesWithin(allLeft, leaveMs)
      await loopIteration() // reads requests that arrived while the process was blocked
    })
  },
  { name: 'readiness' },
)
