import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { clientNetwork } from '../client-address.ts'
import { ApiError } from '../errors.ts'

/** 0 means any number. */
export interface LoginLimits {
  perUser: number
  perAddress: number
  windowSeconds: number
}

declare module 'fastify' {
  interface FastifyInstance {
    /**
     * Counts an attempt to log in as this user. One round trip, none if there is no limit.
     *
     * @throws ApiError `API_TOO_MANY_REQUESTS`; what the store throws.
     */
    limitLogins(request: FastifyRequest, user: string): Promise<void>
  }
}

/** What one process remembers of the refused, at most: some 100 bytes each. */
const MAX_REMEMBERED = 10_000

/**
 * Limits the attempts to log in, by user against guessing, and by address against trying many users.
 * The counters are in Redis, so that the limits hold over all processes.
 *
 * Every attempt counts, for a limit on failures alone would need a second round trip. Who is over a
 * limit is refused for the rest of the window and no longer, without asking Redis again: so an address
 * cannot fill Redis with counters of made-up users either.
 *
 * Not `@fastify/rate-limit` (11.2.0): it has one limit per route and round trip, and wants a client of
 * ioredis for itself.
 */
export const loginLimitPlugin = fp<LoginLimits>(
  async (app, { perUser, perAddress, windowSeconds }) => {
    const refusedUntil = new Map<string, number>()
    let remembered = 0 // the end of the window that they are of

    const refuse = (until: number): never => {
      const seconds = Math.max(1, Math.ceil((until - Date.now()) / 1000))
      throw new ApiError('API_TOO_MANY_REQUESTS', undefined, { retryAfterSeconds: seconds })
    }

    app.decorate('limitLogins', async (request, user) => {
      const limits = [
        { subject: `user ${user}`, max: perUser },
        { subject: `address ${clientNetwork(request)}`, max: perAddress },
      ].filter(({ max }) => max > 0)
      if (limits.length === 0) return
      const subjects = limits.map(({ subject }) => subject)
      for (const subject of subjects) {
        const until = refusedUntil.get(subject) ?? 0
        if (until > Date.now()) refuse(until)
      }
      const { counts, windowEndsAt } = await app.store.countAttempts(subjects, windowSeconds)
      if (windowEndsAt !== remembered) refusedUntil.clear()
      remembered = windowEndsAt
      const over = limits.filter(({ max }, index) => (counts[index] ?? 0) > max)
      if (over.length === 0) return
      for (const { subject } of over) {
        if (refusedUntil.size < MAX_REMEMBERED) refusedUntil.set(subject, windowEndsAt)
      }
      refuse(windowEndsAt)
    })
  },
  { name: 'login-limit', dependencies: ['@onetrip/session-store'] },
)
