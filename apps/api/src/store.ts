import {
  articleKeys,
  createSessionStore,
  type SessionStore,
  type SessionStoreOptions,
} from '@onetrip/session-store'
import { clusterSender, partitionedKeys, sentinelSender } from '@onetrip/session-store/cluster'
import type { Config } from './config.ts'
import { redisLocation } from './redis-location.ts'
import { type StrategyName, sendingBy } from './variants/index.ts'

/** Options that do not depend on where Redis is. */
interface StoreOptions
  extends Omit<SessionStoreOptions, 'url' | 'tls' | 'client' | 'sender' | 'keys'> {
  poolSize: number
  deadlineMs: number
}

/**
 * Creates the configured store.
 *
 * @throws Error as for `redisLocation`; TypeError as for `createSessionStore`.
 */
export function configuredStore(config: Config, options: StoreOptions): SessionStore {
  const { url, tls, cluster, sentinel } = redisLocation(config)
  const { poolSize, ...rest } = options
  const { deadlineMs } = rest
  if (cluster) {
    const keys = partitionedKeys(config.REDIS_PARTITIONS)
    const sender = clusterSender({ ...cluster, deadlineMs })
    return createSessionStore({ ...rest, keys, sender })
  }
  if (sentinel) {
    const sender = sentinelSender({ ...sentinel, poolSize, deadlineMs })
    return createSessionStore({ ...rest, keys: articleKeys, sender })
  }
  const target = { url: url ?? '', tls, poolSize, deadlineMs }
  const sending = sendingBy(config.STRATEGY as StrategyName, target)
  return createSessionStore({ ...rest, ...sending, keys: articleKeys })
}
