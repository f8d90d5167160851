import { ApiError } from '@onetrip/api'
import {
  type Command,
  longLivedConnection,
  type Reply,
  type ServerLocation,
  type SessionStore,
  StoreError,
} from '@onetrip/session-store'
import { shopKeys } from './keys.ts'
import { type Buy, buyByScript, LEFT, type Outcome } from './sale.ts'

// Alternatives to the script in sale.ts, for comparison. Tutorials show each of them.

type Runs = Pick<SessionStore, 'run'>

const send = ({ run }: Runs, ...commands: Command[]): Promise<readonly Reply[]> =>
  run({ commands, readOnly: false, read: (replies) => replies })

/** Outcome that is known before anything is written; undefined: the user may buy. */
function refusal([left, boughtAt]: readonly Reply[]): Outcome | undefined {
  if (left === null) return 'not on sale'
  if (boughtAt !== null) return { boughtAt: Number(boughtAt), left: Number(left), isNew: false }
  return Number(left) < 1 ? 'sold out' : undefined
}

/**
 * Reads the number of items left, then decrements it: two round trips. Do not use it: concurrent buyers can
 * all see and get the last item, so it oversells.
 */
export const buyNaively =
  (store: Runs): Buy =>
  async (item, user) => {
    const key = shopKeys.sale(item)
    const refused = refusal(await send(store, ['HGET', key, LEFT], ['HGET', key, user]))
    if (refused) return refused
    const boughtAt = Date.now()
    const [left] = await send(store, ['HINCRBY', key, LEFT, -1], ['HSET', key, user, boughtAt])
    return { boughtAt, left: Number(left), isNew: true }
  }

/** Attempts per purchase. */
const MAX_ATTEMPTS = 100

/** Includes the address of Redis; a cluster is not supported. */
export interface OptimisticOptions extends ServerLocation {
  /** Number of connections, each with one purchase at a time. Default 8. */
  connections?: number
  /**
   * Timeout in milliseconds, each for connecting, for waiting for a free connection, and for the purchase.
   */
  deadlineMs: number
}

interface SaleMethod {
  readonly buy: Buy
  /** Closes the connections of this method, if it has any. */
  close(): void
}

/**
 * Optimistic locking: WATCH, read, MULTI and EXEC. EXEC fails if the sale has changed since WATCH; then the
 * attempt is repeated. Three round trips per attempt. Correct, but only one of several concurrent buyers
 * succeeds per attempt. Throws `API_OVERLOADED` after 100 attempts, or if no connection becomes free in time.
 *
 * WATCH is a state of the connection, so a purchase cannot share its connection: the EXEC of another caller
 * would end the watch.
 */
export function optimisticSale(options: OptimisticOptions): SaleMethod {
  const { connections = 8, deadlineMs } = options
  const all = Array.from({ length: connections }, () => longLivedConnection(options, deadlineMs))
  for (const redis of all) redis.on('error', () => {}) // the purchase gets the error
  const free = [...all]
  const waiting = new Set<(redis: Connection) => void>()

  function borrow(): Promise<Connection> {
    const redis = free.pop()
    if (redis) return Promise.resolve(redis)
    return new Promise((resolve, reject) => {
      const timeout = setTimeout(() => {
        waiting.delete(take)
        reject(new ApiError('API_OVERLOADED', 'overloaded: no free connection for this purchase'))
      }, deadlineMs)
      const take = (redis: Connection) => {
        clearTimeout(timeout)
        resolve(redis)
      }
      waiting.add(take)
    })
  }

  function giveBack(redis: Connection): void {
    const [take] = waiting
    if (take === undefined) return void free.push(redis)
    waiting.delete(take)
    take(redis)
  }

  return {
    async buy(item, user) {
      const redis = await borrow()
      const late = setTimeout(() => redis.stream?.destroy(new Error('no reply')), deadlineMs)
      try {
        if (redis.status === 'wait') await redis.connect()
        for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts++) {
          const outcome = await attempt(redis, item, user)
          if (outcome) return outcome
        }
      } catch (cause) {
        const message = 'the connection of this purchase failed'
        throw new StoreError('ONETRIP_OUTCOME_UNKNOWN', message, { cause, retrySafe: true })
      } finally {
        clearTimeout(late)
        giveBack(redis)
      }
      throw new ApiError(
        'API_OVERLOADED',
        `overloaded: the purchase failed in ${MAX_ATTEMPTS} attempts because of concurrent purchases`,
      )
    },
    close() {
      for (const redis of all) redis.disconnect()
    },
  }
}

type Connection = ReturnType<typeof longLivedConnection>

/** One attempt. Returns undefined if another purchase changed the sale meanwhile. */
async function attempt(redis: Connection, item: string, user: string) {
  const key = shopKeys.sale(item)
  await redis.watch(key)
  const refused = refusal(await redis.hmget(key, LEFT, user))
  if (refused) {
    await redis.unwatch()
    return refused
  }
  const boughtAt = Date.now()
  const replies = await redis.multi().hincrby(key, LEFT, -1).hset(key, user, boughtAt).exec()
  if (replies === null) return undefined
  const [error, left] = replies[0] ?? []
  if (error) throw error
  return { boughtAt, left: Number(left), isNew: true }
}

export const saleMethodNames = ['script', 'optimistic', 'naive'] as const
export type SaleMethodName = (typeof saleMethodNames)[number]

export const isSaleMethod = (name: string): name is SaleMethodName =>
  saleMethodNames.some((known) => known === name)

/** Returns the method with this name. */
export function saleMethod(
  name: SaleMethodName,
  store: Runs,
  options: OptimisticOptions,
): SaleMethod {
  if (name === 'optimistic') return optimisticSale(options)
  const buy = name === 'naive' ? buyNaively(store) : buyByScript(store)
  return { buy, close: () => undefined }
}
