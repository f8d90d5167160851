import {
  articleKeys,
  type BridgeSide,
  bridgeStores,
  createSessionStore,
  partitionedKeys,
  type SessionStore,
  type SessionStoreOptions,
} from '@onetrip/session-store'
import type { Config } from '../config.ts'
import { migrationTarget, redisLocation } from '../redis-location.ts'

/** Options except the address of Redis and its keys. */
type StoreOptions = Omit<SessionStoreOptions, 'url' | 'tls' | 'cluster' | 'sentinel' | 'keys'>

/**
 * Creates the configured store. During a migration (`REDIS_MIGRATE_TO`): a bridge between it and the target.
 *
 * @throws Error as for `redisLocation`; TypeError as for `createSessionStore`.
 */
export function configuredStore(config: Config, options: StoreOptions): SessionStore {
  const redis = redisLocation(config)
  const keys = redis.cluster ? partitionedKeys(config.REDIS_PARTITIONS) : articleKeys
  const store = createSessionStore({ ...options, ...redis, keys })
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
  return { keys, store: createSessionStore({ ...options, ...migrationTarget(config), keys }) }
}
