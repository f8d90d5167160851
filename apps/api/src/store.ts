import {
  articleKeys,
  createSessionStore,
  type SessionStore,
  type SessionStoreOptions,
} from '@onetrip/session-store'
import { clusterSender, partitionedKeys, sentinelSender } from '@onetrip/session-store/cluster'
import type { Config } from './config.ts'
import { redisLocation } from './redis-location.ts'

/** Options except the address of Redis and its keys. */
type StoreOptions = Omit<SessionStoreOptions, 'url' | 'tls' | 'client' | 'sender' | 'keys'>

/**
 * Creates the configured store.
 *
 * @throws Error as for `redisLocation`; TypeError as for `createSessionStore`.
 */
export function configuredStore(config: Config, options: StoreOptions): SessionStore {
  const { url, tls, cluster, sentinel } = redisLocation(config)
  const { strategy, poolSize, ...rest } = options
  const { deadlineMs } = rest
  if (cluster) {
    const keys = partitionedKeys(config.REDIS_PARTITIONS)
    const sender = clusterSender({ ...cluster, strategy, deadlineMs })
    return createSessionStore({ ...rest, keys, sender })
  }
  if (sentinel) {
    const sender = sentinelSender({ ...sentinel, strategy, poolSize, deadlineMs })
    return createSessionStore({ ...rest, keys: articleKeys, sender })
  }
  return createSessionStore({ ...options, keys: articleKeys, url, tls })
}
