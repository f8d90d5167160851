import { isClustered } from './connections/cluster.ts'
import { checkFunctions, MAX_TIMEOUT_MS } from './input.ts'
import { checkRange } from './range.ts'
import { batching } from './senders/batching.ts'
import { framedWhere } from './senders/frame.ts'
import { pooled } from './senders/pooled.ts'
import type { Sender } from './senders/sender.ts'
import { shortConnections } from './senders/short-connections.ts'
import { oneByOne, pipeline, script, transaction, type Wire } from './senders/wires.ts'
import { DEFAULT_DEADLINE_MS, type StrategyOptions } from './strategy-options.ts'

/** The strategies, side by side: all send the same commands of an update; only this differs. */
const strategies = {
  /** A new connection for each update, one round trip for each command. What not to do. */
  naive: (options) => shortConnections(options, false),
  /** The same with a client that sends nothing by itself when it connects. */
  'naive-lean': (options) => shortConnections(options, true),
  /** Shared connections, one round trip for each command. */
  sequential: (options) => pooled(options, oneByOne),
  /** Shared connections, one ioredis pipeline for each update: one round trip. The source articles' answer. */
  pipeline: (options) => pooled(options, pipeline),
  /** The same, written without ioredis's `Pipeline` object. */
  'pipeline-framed': (options) => pooled(options, framed(options)),
  /** Shared connections, MULTI and EXEC around each update: one round trip, all of it or nothing. */
  transaction: (options) => pooled(onOneServer('transaction', options), transaction),
  /** Shared connections, each update as arguments of one server-side script. For comparison only. */
  script: (options) => pooled(onOneServer('script', options), script),
  /** Shared connections, one pipeline for the updates of all callers of an event-loop turn. */
  batch: (options) => batching(pooled(options, framed(options))),
} satisfies Record<string, (options: StrategyOptions) => Sender>

export type StrategyName = keyof typeof strategies
export const strategyNames = Object.keys(strategies) as StrategyName[]

/**
 * What the store sends by. Opens nothing yet.
 *
 * @throws TypeError when an option is out of its range, or the strategy cannot work with the options.
 */
export function chooseSender(
  options: StrategyOptions & { strategy?: StrategyName; sender?: Sender },
) {
  const { deadlineMs = DEFAULT_DEADLINE_MS, poolSize = 1, strategy = 'batch', sender } = options
  checkRange('deadlineMs', deadlineMs, { least: 1, most: MAX_TIMEOUT_MS })
  checkRange('poolSize', poolSize, { least: 1, most: 1_000, whole: true })
  if (options.tls !== undefined && options.url === undefined) {
    throw new TypeError(
      'tls needs a url: cluster and sentinel, and a client of your own, have their own options of TLS',
    )
  }
  const { url, cluster, sentinel } = options
  if (options.poolSize !== undefined && (url ?? cluster ?? sentinel) === undefined) {
    throw new TypeError(
      'poolSize needs a url, cluster or sentinel: to use several clients of your own, give a list',
    )
  }
  if (sender === undefined) {
    if (Object.hasOwn(strategies, strategy)) {
      return { name: strategy, sender: strategies[strategy](options) }
    }
    throw new TypeError(`strategy must be one of ${strategyNames.join(', ')}`)
  }
  checkFunctions('a sender', sender, ['send', 'close'])
  if (typeof sender.name !== 'string') throw new TypeError('a sender needs a name')
  for (const name of ['url', 'cluster', 'sentinel', 'client', 'strategy'] as const) {
    if (options[name] === undefined) continue
    throw new TypeError(`a sender of your own has its own client: leave out ${name}`)
  }
  return { name: sender.name, sender }
}

const framed = (options: StrategyOptions): Wire =>
  isClustered(options) ? pipeline : framedWhere([options.client ?? []].flat())

/** @throws TypeError for a cluster, where the keys of an update are on several nodes. */
function onOneServer(name: string, options: StrategyOptions): StrategyOptions {
  if (!isClustered(options)) return options
  throw new TypeError(`the strategy ${name} needs all keys on one server; use batch or pipeline`)
}
