import type { Redis } from 'ioredis'
import { checkFunctions, MAX_TIMEOUT_MS } from '../input.ts'
import { checkRange } from '../range.ts'
import { batching } from './batching.ts'
import { type ServerLocation, serverAt } from './client.ts'
import { type PoolOptions, pooled } from './pool.ts'
import type { Sender } from './sender.ts'

/** Set exactly one of `url` and `client`. */
export interface PoolLocation extends ServerLocation {
  /**
   * An ioredis client, or several, created with `safeRedisOptions`. The store connects a lazy client and never closes
   * one.
   */
  client?: Redis | readonly Redis[] | undefined
  /** Size of the connection pool, 1 to 1,000. Not with `client`. Default 1. */
  poolSize?: number
  /** Timeout of an operation, at most a day. Default 2,000. */
  deadlineMs?: number
}

export const DEFAULT_DEADLINE_MS = 2_000

/** @throws TypeError unless this is a valid deadline. */
export const checkDeadline = (deadlineMs: number): void =>
  checkRange('deadlineMs', deadlineMs, { min: 1, max: MAX_TIMEOUT_MS })

type SomePoolOptions = { [Name in keyof PoolOptions]?: PoolOptions[Name] | undefined }

/**
 * Sends the operations of all callers of an event-loop turn as one frame, over shared connections. Does not connect yet.
 *
 * @throws TypeError if an option is out of range, or a client has unsupported options.
 */
export function batchingPool({
  server,
  clients = [],
  poolSize = 1,
  deadlineMs = DEFAULT_DEADLINE_MS,
}: SomePoolOptions): Sender {
  checkRange('poolSize', poolSize, { min: 1, max: 1_000, integer: true })
  return batching(pooled({ server, clients, poolSize, deadlineMs }))
}

/**
 * The sender for the options of a store.
 *
 * @throws TypeError if the options do not work together.
 */
export function chooseSender(options: PoolLocation & { sender?: Sender }): Sender {
  const { url, tls, client, sender, poolSize, deadlineMs } = options
  const given = [url, client, sender].filter((option) => option !== undefined)
  if (given.length !== 1) throw new TypeError('set exactly one of url, client and sender')
  if (tls !== undefined && url === undefined) {
    throw new TypeError('tls needs a url: with client or sender, set tls there')
  }
  if (poolSize !== undefined && url === undefined) {
    throw new TypeError('poolSize needs a url: to use several clients, pass a list as client')
  }
  if (sender === undefined) {
    const clients = [client ?? []].flat()
    if (client !== undefined && clients.length === 0) {
      throw new TypeError('client must contain at least one ioredis client')
    }
    const server = url === undefined ? undefined : serverAt({ url, tls })
    return batchingPool({ server, clients, poolSize, deadlineMs })
  }
  checkFunctions('a sender', sender, ['send', 'close'])
  if (typeof sender.name !== 'string') throw new TypeError('a sender needs a name')
  return sender
}
