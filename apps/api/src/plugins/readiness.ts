import { once } from 'node:events'
import { Server } from 'node:net'
import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
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
   * From now on `/readyz` says no, so that load balancers send nothing new here. Whatever comes is
   * still answered, and is the last on its connection: closing is another step, later.
   */
  stop(): void
}

export interface ReadinessOptions {
  /** How long clients have to leave once the process is about to stop; see `Limits`. */
  leaveMs: number
}

/**
 * Knows whether the process is about to stop, which one that closes is, too.
 *
 * Closing takes no more connections, but cuts none whose client may be about to send: each has `leaveMs`
 * for one more request, whose answer is its last. `close` of Node's HTTP server would cut them at once.
 */
export const readinessPlugin = fp<ReadinessOptions>(
  async (app, { leaveMs }) => {
    let stopping = false
    const stop = () => {
      stopping = true
      app.server.maxRequestsPerSocket = 1 // counted from now on
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
      // For those whose request has been in flight since before.
      Object.assign(app.server, { keepAliveTimeout: leaveMs, keepAliveTimeoutBuffer: 0 })
      const allLeft = once(app.server, 'close')
      Server.prototype.close.call(app.server)
      await settlesWithin(allLeft, leaveMs)
      await turnOfTheLoop() // which reads what came while the process stood still
    })
  },
  { name: 'readiness' },
)
