import {
  createSessionStore,
  type Outcome,
  parseRedisUrl,
  type RedisAddress,
  type SessionStore,
  safeRedisOptions,
  strategyOf,
} from '@onetrip/session-store'
import { newSecret } from '@onetrip/stack/places.ts'
import { Redis } from 'ioredis'

/** Strategies that record views; `closes-itself` exists in this experiment only. */
export type Strategy = 'naive' | 'pipeline' | 'closes-itself'

const DEADLINE_MS = 2_000

/** A store that records views by a connection each, or by one for all. */
export function storeBy(strategy: Strategy, url: string): SessionStore {
  const options = { tokens: { secrets: [newSecret()] }, janitor: false } as const
  return strategy === 'closes-itself'
    ? createSessionStore({ ...options, strategy: closingItself(parseRedisUrl(url)) })
    : createSessionStore({ ...options, strategy, url, deadlineMs: DEADLINE_MS })
}

/**
 * As `naive-lean`, but it closes its connection itself, as most clients do, instead of asking Redis to
 * close it (QUIT). The side that closes first keeps the connection in TIME_WAIT.
 */
const closingItself = (address: RedisAddress) =>
  strategyOf({
    name: 'closes-itself',
    async send({ commands }) {
      const redis = new Redis({
        ...address.options,
        ...safeRedisOptions,
        ...{ lazyConnect: true, connectTimeout: DEADLINE_MS, retryStrategy: null },
        ...{ protocol: 2, enableReadyCheck: false, disableClientInfo: true },
      })
      let reason: unknown
      redis.on('error', (error: Error) => {
        reason = error
      })
      try {
        await redis.connect()
        const outcomes: Outcome[] = []
        for (const [name, ...args] of commands) {
          outcomes.push((await redis.call(name, ...args)) as Outcome)
        }
        return outcomes
      } catch (error) {
        throw reason ?? error
      } finally {
        if (redis.status !== 'end') redis.disconnect()
      }
    },
    close: async () => {},
  })

/** The system's error code behind an error of the store or of the client: `EADDRNOTAVAIL`. */
export function kindOf(error: unknown): string {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (at.name !== 'StoreError' && 'code' in at) return String(at.code)
  }
  return error instanceof Error ? error.message : String(error)
}

const TICK_MS = 10

interface Pace {
  perSecond: number
  seconds: number
  /** Most calls in flight. */
  atOnce: number
  signal: AbortSignal
}

/**
 * Begins calls at a steady rate, whatever becomes of them, and resolves when all are settled. A call that
 * would be one too many in flight is left out.
 *
 * @param call never rejects.
 * @throws the reason of `signal`.
 */
export async function callSteadily(call: () => Promise<void>, pace: Pace): Promise<void> {
  const { perSecond, seconds, atOnce, signal } = pace
  const startedAt = performance.now()
  const open = new Set<Promise<void>>()
  let due = 0
  const { promise: over, resolve } = Promise.withResolvers<void>()
  const tick = setInterval(() => {
    const elapsed = Math.min(seconds, (performance.now() - startedAt) / 1_000)
    const missed = Math.max(0, Math.floor(elapsed * perSecond) - due)
    due += missed
    for (let begun = 0; begun < missed && open.size < atOnce; begun++) {
      const work: Promise<void> = call().finally(() => open.delete(work))
      open.add(work)
    }
    if (elapsed >= seconds || signal.aborted) resolve()
  }, TICK_MS)
  await over
  clearInterval(tick)
  await Promise.all(open)
  signal.throwIfAborted()
}
