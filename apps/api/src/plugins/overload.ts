import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { ApiError } from '../errors.ts'

export interface OverloadOptions {
  /** How late the event loop may be before requests are refused, in milliseconds. 0: as late as it likes. */
  maxEventLoopDelayMs: number
}

const LOOK_EVERY_MS = 100

const refusal = new ApiError('API_OVERLOADED')

/**
 * Refuses the requests of its scope with 503 while the event loop is so late that whoever waits has
 * probably given up: what piled up while the process was blocked, stopped or starved is answered at
 * once. What was accepted before goes on. It is over when the loop is in time again.
 *
 * That too much waits for Redis is the store's to say (`ONETRIP_OVERLOADED`).
 *
 * The limit has to be above what one turn of the loop takes when very many connections are busy: libuv
 * handles up to 48 times 1,024 events before it looks at a timer. With 5,000 that took 1.3 s, although
 * each request was answered within 0.16 s (2026-11-21, 2 cores, a route without Redis, wrk).
 *
 * That is also why this is not `@fastify/under-pressure` (9.2.0): it takes a second without a timer for
 * an infinite delay, and would have refused all of them; and it goes by the mean of many short looks, in
 * which one long standstill disappears.
 */
export const overloadPlugin = fp<OverloadOptions>(
  async (app: FastifyInstance, { maxEventLoopDelayMs }) => {
    if (maxEventLoopDelayMs === 0) return
    let lastDelayMs = 0
    let due = performance.now() + LOOK_EVERY_MS
    const look = setInterval(() => {
      const now = performance.now()
      lastDelayMs = now - due
      due = now + LOOK_EVERY_MS
      if (lastDelayMs > maxEventLoopDelayMs) {
        app.log.warn({ delayMs: Math.round(lastDelayMs) }, 'overloaded: refusing what has piled up')
      }
    }, LOOK_EVERY_MS).unref()
    // The loop reads sockets before timers if it was not waiting when it stood still: hence the second look.
    const late = () =>
      lastDelayMs > maxEventLoopDelayMs || performance.now() - due > maxEventLoopDelayMs
    app.addHook('onClose', async () => clearInterval(look))
    app.addHook('onRequest', (_request, _reply, done) => done(late() ? refusal : undefined))
  },
  { name: 'overload', dependencies: ['errors'] },
)
