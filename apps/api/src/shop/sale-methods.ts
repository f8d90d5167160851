import {
  type Command,
  longLivedConnection,
  type Reply,
  type ServerLocation,
  type SessionStore,
  StoreError,
} from '@onetrip/session-store'
import { ApiError } from '../errors.ts'
import { shopKeys } from './keys.ts'
import { type Buy, buyByScript, LEFT, type Outcome } from './sale.ts'

// Other ways to sell than the script of sale.ts, for comparison. Each is what one finds in tutorials.

type Runs = Pick<SessionStore, 'run'>

const send = ({ run }: Runs, ...commands: Command[]): Promise<readonly Reply[]> =>
  run({ commands, readOnly: false, read: (replies) => replies })

/** What the sale says before anything is written; undefined: the user may buy. */
function refusal([left, boughtAt]: readonly Reply[]): Outcome | undefined {
  if (left === null) return 'not on sale'
  if (boughtAt !== null) return { boughtAt: Number(boughtAt), left: Number(left), isNew: false }
  return Number(left) < 1 ? 'sold out' : undefined
}

/**
 * Reads how many are left, then counts down: two round trips. Buyers who read at the same time all see the
 * last piece, and all get it: it oversells. What not to do.
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

/**
 * Counts down first, and up again if there was none, or the user has one: two to four round trips, no piece
 * sold twice. If the process or Redis dies after the first count, the piece is missing: nobody has it and
 * nobody can buy it. `setStock` with the same number of pieces repairs that.
 */
export const buyCompensated =
  (store: Runs): Buy =>
  async (item, user) => {
    const key = shopKeys.sale(item)
    const read = () => send(store, ['HGET', key, LEFT], ['HGET', key, user])
    const refused = refusal(await read())
    if (refused) return refused
    const boughtAt = Date.now()
    const [left] = await send(store, ['HINCRBY', key, LEFT, -1])
    if (Number(left) >= 0) {
      const [isNew] = await send(store, ['HSETNX', key, user, boughtAt])
      if (isNew === 1) return { boughtAt, left: Number(left), isNew: true }
    }
    await send(store, ['HINCRBY', key, LEFT, 1])
    return refusal(await read()) ?? 'sold out'
  }

/** Attempts of one purchase before it gives up. */
const MAX_ATTEMPTS = 100

/** Where Redis is, as the store's; not a cluster. */
export interface OptimisticOptions extends ServerLocation {
  /** Connections, each with one purchase at a time. Default 8. */
  connections?: number
  /** For connecting, for a free connection, and for the purchase on it, in milliseconds each. */
  deadlineMs: number
}

export interface SaleMethod {
  readonly buy: Buy
  /** Closes the connections of its own, if it has any. */
  close(): void
}

/**
 * WATCH, read, then MULTI and EXEC, which does nothing if the sale has changed since, and again from the start:
 * three round trips for an attempt. Exact, but of the buyers who read at the same time only one gets on. Throws
 * `API_OVERLOADED` after 100 attempts, or if no connection gets free.
 *
 * WATCH belongs to a connection, so each purchase has one for itself: on a shared one, the EXEC of another
 * caller would end the watch.
 */
export function optimisticSale(options: OptimisticOptions): SaleMethod {
  const { connections = 8, deadlineMs } = options
  const all = Array.from({ length: connections }, () => longLivedConnection(options, deadlineMs))
  for (const redis of all) redis.on('error', () => {}) // the purchase fails
  const free = [...all]
  const waiting = new Set<(redis: Connection) => void>()

  function borrow(): Promise<Connection> {
    const redis = free.pop()
    if (redis) return Promise.resolve(redis)
    return new Promise((resolve, reject) => {
      const timeout = setTimeout(() => {
        waiting.delete(take)
        reject(new ApiError('API_OVERLOADED', 'no connection got free for this purchase'))
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
      throw new ApiError('API_OVERLOADED', `other purchases came first, ${MAX_ATTEMPTS} times`)
    },
    close() {
      for (const redis of all) redis.disconnect()
    },
  }
}

type Connection = ReturnType<typeof longLivedConnection>

/** Undefined: another purchase came first. */
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

export const saleMethodNames = ['script', 'compensated', 'optimistic', 'naive'] as const
export type SaleMethodName = (typeof saleMethodNames)[number]

/** The way to sell by its name. */
export function saleMethod(
  name: SaleMethodName,
  store: Runs,
  options: OptimisticOptions,
): SaleMethod {
  if (name === 'optimistic') return optimisticSale(options)
  const methods = { script: buyByScript, compensated: buyCompensated, naive: buyNaively }
  return { buy: methods[name](store), close: () => undefined }
}
