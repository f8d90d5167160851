import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { ApiError } from '../errors.ts'

interface OverloadOptions {
  /** Event loop delay above which requests are rejected, in milliseconds. 0: no limit. */
  maxEventLoopDelayMs: number
}

const CHECK_EVERY_MS = 100

const overloaded = new ApiError('API_OVERLOADED')

/**
 * Load shedding: rejects the requests of its scope with 503 while the event loop delay is above the limit.
 * After the process was blocked, stopped or starved of CPU, clients of the waiting requests have probably
 * given up. Requests in progress continue. Rejecting ends when the delay is below the limit again.
 *
 * The store limits the operations in flight to Redis (`ONETRIP_OVERLOADED`).
 *
 * The limit must exceed the duration of one loop iteration with very many busy connections: libuv handles up
 * to 48 times 1,024 events before it runs timers. With 5,000 connections an iteration took 1.3 s, although
 * each request was answered within 0.16 s (2026-11-21, 2 cores, a route without Redis, wrk).
 *
 * Not `@fastify/under-pressure` (9.2.0): it treats one second without a timer as an infinite delay, and would
 * have rejected all those requests. It also uses the mean of many short samples, in which one long block
 * disappears.
 */
export const overloadPlugin = fp<OverloadOptions>(
  async (app: FastifyInstance, { maxEventLoopDelayMs }) => {
    if (maxEventLoopDelayMs === 0) return
    let lastDelayMs = 0
    let due = performance.now() + CHECK_EVERY_MS
    const timer = setInterval(() => {
      const now = performance.now()
      lastDelayMs = now - due
      due = now + CHECK_EVERY_MS
      if (lastDelayMs > maxEventLoopDelayMs) {
        app.log.warn({ delayMs: Math.round(lastDelayMs) }, 'overloaded: rejecting waiting requests')
      }
    }, CHECK_EVERY_MS).unref()
    // The second condition is for sockets that the loop reads before it runs the overdue timer.
    const late = () =>
      lastDelayMs > maxEventLoopDelayMs || performance.now() - due > maxEventLoopDelayMs
    app.addHook('onClose', async () => clearInterval(timer))
    app.addHook('onRequest', (_request, _reply, done) => done(late() ? overloaded : undefined))
  },
  { name: 'overload', dependencies: ['errors'] },
)
