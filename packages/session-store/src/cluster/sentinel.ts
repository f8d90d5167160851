import type { Redis } from 'ioredis'
import { checkOptionNames, checkRange, MAX_TIMEOUT_MS, type NamesOf } from '../input.ts'
import { batching } from '../redis/batching.ts'
import {
  longLived,
  type RedisOptions,
  retryDelayMs,
  type Server,
  sharedConnection,
  shortConnection,
} from '../redis/client.ts'
import { pooled } from '../redis/pool.ts'
import type { Sender } from '../redis/sender.ts'
import { loginNames, type SentinelAddress, sentinelOptions } from './address.ts'

export interface SentinelSenderOptions extends SentinelAddress {
  /** As the options of the store. */
  poolSize?: number | undefined
  deadlineMs?: number | undefined
}

const optionNames: NamesOf<SentinelSenderOptions> = {
  ...loginNames,
  nodes: true,
  name: true,
  sentinelUsername: true,
  sentinelPassword: true,
  poolSize: true,
  deadlineMs: true,
}

/**
 * A sender to the current primary that Redis Sentinel reports, database 0.
 *
 * @throws TypeError if an option is invalid.
 */
export function sentinelSender(options: SentinelSenderOptions): Sender {
  checkOptionNames('sentinelSender', options, optionNames)
  const { poolSize = 1, deadlineMs = 2_000, ...address } = options
  checkRange('deadlineMs', deadlineMs, { min: 1, max: MAX_TIMEOUT_MS })
  checkRange('poolSize', poolSize, { min: 1, max: 1_000, integer: true })
  return batching(pooled({ server: serverOf(address), poolSize, deadlineMs }))
}

/** As `longLivedConnection`, to the current primary. @throws TypeError if an option is invalid. */
export const sentinelConnection = (address: SentinelAddress, connectTimeoutMs: number): Redis =>
  longLived(serverOf(address), connectTimeoutMs)

function serverOf(address: SentinelAddress): Server {
  const options = sentinelOptions(address)
  return {
    name: address.name,
    shared(connectTimeoutMs) {
      const shared: RedisOptions = {
        ...options,
        // A primary that is cut off from the sentinels does not report a failover; the sentinels do.
        failoverDetector: true,
        sentinelCommandTimeout: connectTimeoutMs,
        sentinelRetryStrategy: retryDelayMs,
        sentinelReconnectStrategy: retryDelayMs,
      }
      const redis = sharedConnection(shared, connectTimeoutMs)
      redis.on('connect', () => watchDetector(redis))
      return redis
    },
    short: (connectTimeoutMs) =>
      shortConnection(
        {
          ...options,
          sentinelCommandTimeout: connectTimeoutMs,
          sentinelRetryStrategy: () => null,
        },
        connectTimeoutMs,
      ),
  }
}

/**
 * Keeps the failover detector subscribed. ioredis would print the errors of its private connections, and a
 * resubscription without a reply would be an unhandled rejection.
 */
function watchDetector(redis: Redis): void {
  const { failoverDetector } = Reflect.get(redis, 'connector') as {
    failoverDetector?: { sentinels: readonly { client: Redis }[] } | null
  }
  for (const { client } of failoverDetector?.sentinels ?? []) {
    client.on('error', () => {})
    client.options.autoResubscribe = false
    client.on('ready', () => {
      const { stream } = client
      client.subscribe('+switch-master').catch(() => stream.destroy()) // then it connects again
    })
  }
}
