import { articleKeys, SessionStore, type SessionStoreOptions } from '@onetrip/session-store'
import { clusterSender, partitionedKeys, sentinelSender } from '@onetrip/session-store/cluster'
import type { Config } from './config.ts'
import { redisLocation } from './redis-location.ts'
import { naiveOnCluster, type StrategyName, sendingBy } from './variants/index.ts'

/** Options that do not depend on where Redis is. */
interface StoreOptions extends Omit<SessionStoreOptions, 'redis' | 'sender' | 'keys'> {
  poolSize: number
  deadlineMs: number
}

/**
 * Creates the configured store.
 *
 * @throws Error as for `redisLocation`; TypeError as for `SessionStore`.
 */
export function configuredStore(config: Config, options: StoreOptions): SessionStore {
  const { redis = {}, cluster, sentinel } = redisLocation(config)
  const { poolSize, ...rest } = options
  const { deadlineMs } = rest
  if (cluster) {
    const keys = partitionedKeys(config.REDIS_PARTITIONS)
    const sender =
      config.STRATEGY === 'naive'
        ? naiveOnCluster(cluster, deadlineMs)
        : clusterSender({ ...cluster, deadlineMs })
    return new SessionStore({ ...rest, keys, sender })
  }
  if (sentinel) {
    const sender = sentinelSender({ ...sentinel, poolSize, deadlineMs })
    return new SessionStore({ ...rest, keys: articleKeys, sender })
  }
  const target = { redis, poolSize, deadlineMs }
  const sending = sendingBy(config.STRATEGY as StrategyName, target)
  return new SessionStore({ ...rest, ...sending, keys: articleKeys })
}
