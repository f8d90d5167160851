import {
  type BridgeSide,
  bridgeStores,
  createCluster,
  createSessionStore,
  documentKeys,
  partitionedKeys,
  redisAddress,
  type SessionStore,
  type SessionStoreOptions,
} from '@onetrip/session-store'
import { type Config, redisTls } from '../config.ts'

/**
 * The store that the settings name: of `REDIS_URL`, and while sessions move (`REDIS_MIGRATE_TO`) a bridge to
 * where they go.
 *
 * @param options Of the store of `REDIS_URL`.
 * @throws TypeError as `createSessionStore`.
 */
export function configuredStore(config: Config, options: SessionStoreOptions): SessionStore {
  const store = createSessionStore(options)
  if (config.REDIS_MIGRATE_TO === '') return store
  const { url, tls, poolSize, ...others } = options
  return bridgeStores({
    from: { store, keys: documentKeys },
    to: targetSide(config, others),
    home: config.REDIS_MIGRATE_HOME as 'source' | 'target',
  })
}

/**
 * The store of `REDIS_MIGRATE_TO`, with the user, password and TLS of `REDIS_URL`.
 *
 * @throws TypeError as `createSessionStore`.
 */
export function targetSide(config: Config, options: SessionStoreOptions): BridgeSide {
  const { REDIS_MIGRATE_TO, REDIS_PARTITIONS, REDIS_URL } = config
  const keys = partitionedKeys(REDIS_PARTITIONS)
  const tls = redisTls(config)
  if (REDIS_MIGRATE_TO.includes('://')) {
    return { keys, store: createSessionStore({ ...options, keys, url: REDIS_MIGRATE_TO, tls }) }
  }
  const { username, password, tls: tlsOptions } = redisAddress(REDIS_URL, tls).options
  const client = createCluster(REDIS_MIGRATE_TO.split(',').map(nodeOf), {
    redisOptions: {
      ...(username !== undefined && { username }),
      ...(password !== undefined && { password }),
      ...(tlsOptions && { tls: tlsOptions }),
    },
    // By TLS a node is known by its name.
    ...(tlsOptions && { dnsLookup: (address, done) => done(null, address) }),
  })
  const store = createSessionStore({ ...options, keys, client })
  const close = store.close
  store.close = async () => {
    await close()
    client.disconnect()
  }
  return { keys, store }
}

function nodeOf(node: string): { host: string; port: number } {
  const [, host = '', port] = /^\[?(.*?)\]?:(\d+)$/.exec(node) ?? []
  return { host, port: Number(port) }
}
