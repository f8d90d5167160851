import type { Redis } from 'ioredis'
import { safeRedisOptions } from './client.ts'
import { isOfIoredis5 } from './ioredis-version.ts'

/** An option of ioredis that must keep its default in an injected client, and why. */
export type Unsupported = readonly [name: string, byDefault: unknown, why: string]

export const unsupportedOptions: readonly Unsupported[] = [
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

/**
 * Rejects a client that could execute a write twice, or that has unsupported options.
 *
 * @throws TypeError that says what to pass instead, or which options to change.
 */
export function checkClient(client: Redis): void {
  // Other libraries have the same methods, but behave differently. This option exists since ioredis 5.10.
  const options = (client as Partial<Redis> | undefined)?.options
  const isKnown = typeof options === 'object' && 'blockingTimeoutGrace' in options
  if (!isKnown || typeof client.call !== 'function' || 'isPipeline' in client) {
    throw new TypeError(
      'client must be a client of ioredis 5 (from 5.11) or 6: for a client of node-redis, set sender: nodeRedisSender(client); for a Cluster, sender: clusterSender({ client })',
    )
  }
  const ofVersion = isOfIoredis5(options) ? [readyCheckOption] : []
  checkClientOptions('safeRedisOptions', safeRedisOptions, {
    given: [options],
    unsupported: [...unsupportedOptions, ...ofVersion],
  })
}

/**
 * @param preset The name of `safe`, the options that the client must have.
 * @param given The client's options, and those of its nodes.
 * @throws TypeError naming the options to change.
 */
export function checkClientOptions(
  preset: string,
  safe: object,
  { given, unsupported }: { given: readonly object[]; unsupported: readonly Unsupported[] },
): void {
  const valuesOf = (name: string) => given.map((options) => Reflect.get(options, name))
  const wrong = unsupported
    .filter(([name, byDefault]) =>
      valuesOf(name).some((value) => (value ?? byDefault) !== byDefault),
    )
    .map(([name, , why]) => `${name} (${why})`)
  if (wrong.length > 0) {
    throw new TypeError(
      `this ioredis client has options that are not supported: ${wrong.join('; ')}`,
    )
  }
  const missing = Object.entries(safe)
    .filter(([name, value]) => typeof value !== 'object' && valuesOf(name)[0] !== value)
    .map(([name, value]) => `${name}: ${value}`)
  if (missing.length > 0) {
    throw new TypeError(
      `this ioredis client could send a write twice or late; set ${missing.join(', ')} (see ${preset})`,
    )
  }
}
