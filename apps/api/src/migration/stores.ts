import {
  type BridgeSide,
  bridgeStores,
  createSessionStore,
  documentKeys,
  partitionedKeys,
  type SessionStore,
  type SessionStoreOptions,
} from '@onetrip/session-store'
import type { Config } from '../config.ts'
import { migrationTarget, redisLocation } from '../redis-location.ts'

/** All but where Redis is, and its keys. */
type StoreOptions = Omit<SessionStoreOptions, 'url' | 'tls' | 'cluster' | 'sentinel' | 'keys'>

/**
 * The store that the settings name, and while sessions move (`REDIS_MIGRATE_TO`) a bridge from it to the store
 * where they go.
 *
 * @throws Error as `redisLocation`; TypeError as `createSessionStore`.
 */
export function configuredStore(config: Config, options: StoreOptions): SessionStore {
  const redis = redisLocation(config)
  const keys = redis.cluster ? partitionedKeys(config.REDIS_PARTITIONS) : documentKeys
  const store = createSessionStore({ ...options, ...redis, keys })
  if (config.REDIS_MIGRATE_TO === '') return store
  return bridgeStores({
    from: { store, keys },
    to: targetSide(config, options),
    home: config.REDIS_MIGRATE_HOME as 'source' | 'target',
  })
}

/**
 * The store of `REDIS_MIGRATE_TO`.
 *
 * @throws Error as `migrationTarget`; TypeError as `createSessionStore`.
 */
export function targetSide(config: Config, options: StoreOptions): BridgeSide {
  const keys = partitionedKeys(config.REDIS_PARTITIONS)
  return { keys, store: createSessionStore({ ...options, ...migrationTarget(config), keys }) }
}
