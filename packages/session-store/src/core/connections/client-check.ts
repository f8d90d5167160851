import { safeClusterOptions } from '../../cluster/client.ts'
import { type Client, isCluster, safeRedisOptions } from './client.ts'
import { checkKind } from './client-kind.ts'
import { isOfIoredis5 } from './ioredis-version.ts'

/** An option of ioredis that must keep its default in an injected client, and why. */
type Unsupported = readonly [name: string, byDefault: unknown, why: string]

const unsupportedOptions: readonly Unsupported[] = [
  ['commandTimeout', undefined, 'the store has its own deadline, deadlineMs'],
  ['reconnectOnError', null, 'it can resend a command'],
  ['stringNumbers', false, 'the store expects numbers, not strings'],
  ['monitor', false, 'a monitoring connection cannot send commands'],
  ['keyPrefix', '', "use the store's option prefix: the keys are the same"],
]

const readyCheckOption: Unsupported = [
  'enableReadyCheck',
  true,
  'without it, ioredis 5 treats a connection as ready too early, and may treat a lost one as ready forever',
]

const unsupportedClusterOptions: readonly Unsupported[] = [
  ['db', 0, 'a cluster has only database 0'],
  ['enableAutoPipelining', false, 'it can resend a command when a slot moves'],
  ['scaleReads', 'master', 'a replica may still have a session that has ended'],
]

/**
 * Rejects a client that could execute a write twice, or that has unsupported options.
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
      `this ioredis client could send a write twice or late; set ${wrong.join(', ')} (see ${preset})`,
    )
  }
}
