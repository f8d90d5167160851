import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { clientNetwork } from '../client-address.ts'
import { ApiError } from '../errors.ts'

/** Maximum login attempts per window; 0: no limit. */
export interface LoginLimits {
  perUser: number
  perAddress: number
  windowSeconds: number
}

declare module 'fastify' {
  interface FastifyInstance {
    /**
     * Counts an attempt to log in, or to start a guest session (no user), and rejects it above a limit. One round trip; none without limits.
     *
     * @throws ApiError `API_TOO_MANY_REQUESTS`.
     * @throws StoreError as `countAttempts`.
     */
    limitLogins(request: FastifyRequest, user?: string): Promise<void>
  }
}

/** Maximum rejected users and addresses that one process remembers: about 100 bytes each. */
const MAX_REMEMBERED = 10_000

/**
 * Limits login attempts: per user against guessing passwords, per address against trying many users. The
 * counters are in Redis, so the limits apply across all processes.
 *
 * Successful attempts count too: counting only failures would need a second round trip. Above a limit,
 * attempts are rejected until the window ends, without a request to Redis. So an address cannot fill Redis
 * with counters of invented users either.
 *
 * Not `@fastify/rate-limit` (11.2.0), which needs a round trip per limit and an ioredis client of its own.
 */
export const loginLimitPlugin = fp<LoginLimits>(
  async (app, { perUser, perAddress, windowSeconds }) => {
    const rejectedUntil = new Map<string, number>()
    let rememberedWindowEnd = 0

    const reject = (until: number): never => {
      const seconds = Math.max(1, Math.ceil((until - Date.now()) / 1000))
      throw new ApiError('API_TOO_MANY_REQUESTS', undefined, { retryAfterSeconds: seconds })
    }

    app.decorate('limitLogins', async (request, user) => {
      const limits = [
        { subject: `user ${user}`, max: user === undefined ? 0 : perUser },
        { subject: `address ${clientNetwork(request)}`, max: perAddress },
      ].filter(({ max }) => max > 0)
      if (limits.length === 0) return
      const subjects = limits.map(({ subject }) => subject)
      for (const subject of subjects) {
        const until = rejectedUntil.get(subject) ?? 0
        if (until > Date.now()) reject(until)
      }
      const { counts, windowEndsAt } = await app.store.countAttempts(subjects, windowSeconds)
      if (windowEndsAt !== rememberedWindowEnd) rejectedUntil.clear()
      rememberedWindowEnd = windowEndsAt
      const over = limits.filter(({ max }, index) => (counts[index] ?? 0) > max)
      if (over.length === 0) return
      for (const { subject } of over) {
        if (rejectedUntil.size < MAX_REMEMBERED) rejectedUntil.set(subject, windowEndsAt)
      }
      reject(windowEndsAt)
    })
  },
  { name: 'login-limit', dependencies: ['@onetrip/session-store'] },
)
