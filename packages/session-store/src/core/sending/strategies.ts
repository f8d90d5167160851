import { isClustered } from '../../cluster/nodes.ts'
import type { StoreWarning } from '../diagnostics.ts'
import { checkFunctions, MAX_TIMEOUT_MS } from '../input.ts'
import { checkRange } from '../range.ts'
import { batching } from './batching.ts'
import { framedWhere, whyNoFrames } from './frame.ts'
import { pooled } from './pooled.ts'
import type { Sender } from './sender.ts'
import { shortConnections } from './short-connections.ts'
import { DEFAULT_DEADLINE_MS, type StrategyOptions } from './strategy-options.ts'
import { oneByOne, pipeline, script, transaction, type Wire } from './wires.ts'

/** All strategies send the same commands for an update; they differ in connections and round trips. */
const strategies = {
  /** A new connection for each update, one round trip for each command. For comparison only. */
  naive: (options) => shortConnections(options, false),
  /** The same, without the commands that ioredis sends when it connects. */
  'naive-lean': (options) => shortConnections(options, true),
  /** Shared connections, one round trip for each command. */
  sequential: (options) => pooled(options, oneByOne),
  /** Shared connections, one ioredis pipeline for each update: the solution of the source articles. */
  pipeline: (options) => pooled(options, pipeline),
  /** The same, written without ioredis's `Pipeline` object. */
  'pipeline-framed': (options) => pooled(options, framed(options)),
  /** Shared connections, MULTI and EXEC around each update: one round trip, atomic. */
  transaction: (options) => pooled(onOneServer('transaction', options), transaction),
  /** Shared connections, each update as arguments of one server-side script. For comparison only. */
  script: (options) => pooled(onOneServer('script', options), script),
  /** Shared connections, one pipeline for the updates of all callers of an event-loop turn. */
  batch: (options) => batching(pooled(options, framed(options))),
} satisfies Record<string, (options: StrategyOptions) => Sender>

export type StrategyName = keyof typeof strategies
export const strategyNames = Object.keys(strategies) as StrategyName[]

/**
 * Returns the sender for these options, and a warning if it takes more CPU than it should. Does not connect yet.
 *
 * @throws TypeError if an option is out of range or does not work with the strategy.
 */
export function chooseSender(
  options: StrategyOptions & { strategy?: StrategyName; sender?: Sender },
) {
  const { deadlineMs = DEFAULT_DEADLINE_MS, poolSize = 1, strategy = 'batch', sender } = options
  checkRange('deadlineMs', deadlineMs, { min: 1, max: MAX_TIMEOUT_MS })
  checkRange('poolSize', poolSize, { min: 1, max: 1_000, integer: true })
  if (options.tls !== undefined && options.url === undefined) {
    throw new TypeError(
      'tls needs a url: with cluster or sentinel, set its own option tls; with client, set tls on the client',
    )
  }
  const { url, cluster, sentinel } = options
  if (options.poolSize !== undefined && (url ?? cluster ?? sentinel) === undefined) {
    throw new TypeError(
      'poolSize needs a url, cluster or sentinel: to use several of your own clients, pass a list as client',
    )
  }
  if (sender === undefined) {
    if (Object.hasOwn(strategies, strategy)) {
      return {
        name: strategy,
        sender: strategies[strategy](options),
        warning: framesOff(strategy, options),
      }
    }
    throw new TypeError(`strategy must be one of ${strategyNames.join(', ')}`)
  }
  checkFunctions('a sender', sender, ['send', 'close'])
  if (typeof sender.name !== 'string') throw new TypeError('a sender needs a name')
  for (const name of ['url', 'cluster', 'sentinel', 'client', 'strategy'] as const) {
    if (options[name] === undefined) continue
    throw new TypeError(`sender cannot be combined with ${name}: a sender has its own client`)
  }
  return { name: sender.name, sender }
}

const framed = (options: StrategyOptions): Wire =>
  isClustered(options) ? pipeline : framedWhere(clientsOf(options))

const clientsOf = ({ client }: StrategyOptions) => [client ?? []].flat()

const framedStrategies: readonly StrategyName[] = ['batch', 'pipeline-framed']

function framesOff(strategy: StrategyName, options: StrategyOptions): StoreWarning | undefined {
  if (!framedStrategies.includes(strategy) || isClustered(options)) return undefined
  const why = whyNoFrames(clientsOf(options))
  if (why === undefined) return undefined
  return {
    code: 'ONETRIP_FRAMES_OFF',
    message: `${strategy} sends pipelines of ioredis instead of frames, which costs about half of its gain in CPU: ${why}`,
  }
}

/** @throws TypeError for a cluster: there the keys of an update are on several nodes. */
function onOneServer(name: string, options: StrategyOptions): StrategyOptions {
  if (!isClustered(options)) return options
  throw new TypeError(`the strategy ${name} needs all keys on one server; use batch or pipeline`)
}
