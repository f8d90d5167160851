import { type Client, isCluster, safeRedisOptions } from './client.ts'
import { checkKind } from './client-kind.ts'
import { safeClusterOptions } from './cluster-client.ts'
import { isOfIoredis5 } from './ioredis-version.ts'

/** An option of ioredis that an injected client must leave at its default, and why. */
type Unsupported = readonly [name: string, byDefault: unknown, why: string]

const unsupportedOptions: readonly Unsupported[] = [
  ['commandTimeout', undefined, 'the store has a deadline of its own, deadlineMs'],
  ['reconnectOnError', null, 'it can send a command again'],
  ['stringNumbers', false, 'the store needs numbers as numbers'],
  ['monitor', false, 'such a connection cannot send commands'],
  ['keyPrefix', '', "use the store's option prefix: the keys are the same"],
]

const readyCheckOption: Unsupported = [
  'enableReadyCheck',
  true,
  'without it ioredis 5 takes a connection for ready too early, and a lost one perhaps for ever',
]

const unsupportedClusterOptions: readonly Unsupported[] = [
  ['db', 0, 'a cluster has no other database'],
  ['enableAutoPipelining', false, 'it can send a command again when a slot moves'],
  ['scaleReads', 'master', 'a replica may still have a session that has ended'],
]

/**
 * Refuses a client that could execute a write twice, or that the store cannot work with.
 *
 * @throws TypeError naming the options to change.
 */
export function checkClient(client: Client): void {
  checkKind(client)
  const actual: Record<string, unknown> = { ...client.options }
  const ofNodes: Record<string, unknown> = {
    ...(isCluster(client) && client.options.redisOptions),
  }
  const unsupported = [
    ...unsupportedOptions,
    ...(isCluster(client) ? unsupportedClusterOptions : []),
    ...(!isCluster(client) && isOfIoredis5(actual) ? [readyCheckOption] : []),
  ].filter(([name, byDefault]) =>
    [actual[name], ofNodes[name]].some((value) => (value ?? byDefault) !== byDefault),
  )
  if (unsupported.length > 0) {
    const list = unsupported.map(([name, , why]) => `${name} (${why})`)
    throw new TypeError(
      `this ioredis client has options that are not supported: ${list.join('; ')}`,
    )
  }
  const wanted = isCluster(client) ? safeClusterOptions : safeRedisOptions
  const wrong = Object.entries(wanted)
    .filter(([name, value]) => typeof value !== 'object' && actual[name] !== value)
    .map(([name, value]) => `${name}: ${value}`)
  if (wrong.length > 0) {
    const preset = isCluster(client) ? 'safeClusterOptions' : 'safeRedisOptions'
    throw new TypeError(
      `this ioredis client could send a write twice or late; it needs ${wrong.join(', ')} (see ${preset})`,
    )
  }
}
