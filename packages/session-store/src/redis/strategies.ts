import type { Redis } from 'ioredis'
import { checkFunctions, MAX_TIMEOUT_MS } from '../input.ts'
import { checkRange } from '../range.ts'
import { batching } from './batching.ts'
import { type ServerLocation, serverAt } from './client.ts'
import { framedWhere } from './frame.ts'
import { type PoolOptions, pooled } from './pool.ts'
import type { Sender } from './sender.ts'
import { shortConnections } from './short-connections.ts'
import { oneByOne, pipeline } from './wires.ts'

/** Set exactly one of `url` and `client`. */
export interface StrategyOptions extends ServerLocation {
  /**
   * An ioredis client, or several, created with `safeRedisOptions`. The store connects a lazy client and never closes
   * one.
   */
  client?: Redis | readonly Redis[] | undefined
  /** Size of the connection pool, 1 to 1,000. `naive` has no pool. Not with `client`. Default 1. */
  poolSize?: number
  /** Timeout of an operation, at most a day. With `naive` it includes connecting. Default 2,000. */
  deadlineMs?: number
}

export const DEFAULT_DEADLINE_MS = 2_000

/** @throws TypeError unless this is a valid deadline. */
export const checkDeadline = (deadlineMs: number): void =>
  checkRange('deadlineMs', deadlineMs, { min: 1, max: MAX_TIMEOUT_MS })

type SomePoolOptions = { [Name in keyof PoolOptions]?: PoolOptions[Name] | undefined }

/** All strategies send the same commands for an operation; they differ in connections and round trips. */
const strategies = {
  /** A new connection for each operation, one round trip for each command. For comparison only. */
  naive({ server, deadlineMs }) {
    if (server) return shortConnections(server, deadlineMs)
    throw new TypeError('the strategy naive opens its own connections: set url, and no client')
  },
  /** Shared connections, one round trip for each command. */
  sequential: (options) => pooled(oneByOne, options),
  /** Shared connections, one ioredis pipeline for each operation: the solution of the source articles. */
  pipeline: (options) => pooled(pipeline, options),
  /** Shared connections, one pipeline for the operations of all callers of an event-loop turn. */
  batch: (options) => batching(pooled(framedWhere(options.clients), options)),
} satisfies Record<string, (options: PoolOptions) => Sender>

export type StrategyName = keyof typeof strategies
export const strategyNames = Object.keys(strategies) as StrategyName[]

/** @throws TypeError unless this is a strategy. */
export function checkStrategy(name: string): asserts name is StrategyName {
  if (!Object.hasOwn(strategies, name)) {
    throw new TypeError(`strategy must be one of ${strategyNames.join(', ')}`)
  }
}

/**
 * The sender of a strategy. Does not connect yet.
 *
 * @throws TypeError if an option is out of range or does not work with the strategy.
 */
export function senderOf(
  strategy: StrategyName,
  { server, clients = [], poolSize = 1, deadlineMs = DEFAULT_DEADLINE_MS }: SomePoolOptions,
): Sender {
  checkStrategy(strategy)
  checkRange('poolSize', poolSize, { min: 1, max: 1_000, integer: true })
  return strategies[strategy]({ server, clients, poolSize, deadlineMs })
}

/**
 * The sender for the options of a store.
 *
 * @throws TypeError if the options do not work together.
 */
export function chooseSender(
  options: StrategyOptions & { strategy?: StrategyName; sender?: Sender },
): Sender {
  const { url, tls, client, sender, strategy = 'batch', poolSize, deadlineMs } = options
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
    return senderOf(strategy, { server, clients, poolSize, deadlineMs })
  }
  if (options.strategy !== undefined) {
    throw new TypeError(
      'sender cannot be combined with strategy: a sender is a strategy of its own',
    )
  }
  checkFunctions('a sender', sender, ['send', 'close'])
  if (typeof sender.name !== 'string') throw new TypeError('a sender needs a name')
  return sender
}
