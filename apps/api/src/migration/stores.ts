import {
  articleKeys,
  createSessionStore,
  type Keys,
  type SessionStore,
  type SessionStoreOptions,
} from '@onetrip/session-store'
import { clusterSender, partitionedKeys, sentinelSender } from '@onetrip/session-store/cluster'
import { type BridgeSide, bridgeStores } from '@onetrip/session-store/migration'
import type { Config } from '../config.ts'
import { migrationTarget, type RedisLocation, redisLocation } from '../redis-location.ts'

/** Options except the address of Redis and its keys. */
type StoreOptions = Omit<SessionStoreOptions, 'url' | 'tls' | 'client' | 'sender' | 'keys'>

function storeAt(
  { url, tls, cluster, sentinel }: RedisLocation,
  options: StoreOptions,
  keys: Keys,
) {
  const { strategy, poolSize, ...rest } = options
  const { deadlineMs } = rest
  if (cluster) {
    return createSessionStore({
      ...rest,
      keys,
      sender: clusterSender({ ...cluster, strategy, deadlineMs }),
    })
  }
  if (sentinel) {
    const sender = sentinelSender({ ...sentinel, strategy, poolSize, deadlineMs })
    return createSessionStore({ ...rest, keys, sender })
  }
  return createSessionStore({ ...options, keys, url, tls })
}

/**
 * Creates the configured store. During a migration (`REDIS_MIGRATE_TO`): a bridge between it and the target.
 *
 * @throws Error as for `redisLocation`; TypeError as for `createSessionStore`.
 */
export function configuredStore(config: Config, options: StoreOptions): SessionStore {
  const redis = redisLocation(config)
  const keys = redis.cluster ? partitionedKeys(config.REDIS_PARTITIONS) : articleKeys
  const store = storeAt(redis, options, keys)
  if (config.REDIS_MIGRATE_TO === '') return store
  return bridgeStores({
    from: { store, keys },
    to: targetSide(config, options),
    home: config.REDIS_MIGRATE_HOME as 'source' | 'target',
  })
}

/**
 * Creates the store of `REDIS_MIGRATE_TO`.
 *
 * @throws Error as for `migrationTarget`; TypeError as for `createSessionStore`.
 */
export function targetSide(config: Config, options: StoreOptions): BridgeSide {
  const keys = partitionedKeys(config.REDIS_PARTITIONS)
  const location = migrationTarget(config) ?? {}
  return { keys, store: storeAt(location, options, keys) }
}
