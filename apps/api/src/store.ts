import { cluster, partitionedKeys } from '@onetrip/cluster'
import { articleKeys, SessionStore, type SessionStoreOptions } from '@onetrip/session-store'
import type { Config } from './read-settings.ts'
import { redisLocation, serverIn } from './redis-location.ts'
import { naiveOnCluster, type StrategyName, sendingBy } from './strategies/index.ts'

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
  const location = redisLocation(config)
  const { poolSize, ...rest } = options
  const { deadlineMs, maxInFlight } = rest
  if (location.cluster === undefined) {
    const target = { redis: serverIn(location), poolSize, deadlineMs }
    const sending = sendingBy(config.STRATEGY as StrategyName, target)
    return new SessionStore({ ...rest, ...sending, keys: articleKeys })
  }
  const partitions = config.REDIS_PARTITIONS
  if (config.STRATEGY === 'naive') {
    const sender = naiveOnCluster(location.cluster, deadlineMs)
    return new SessionStore({ ...rest, sender, keys: partitionedKeys(partitions) })
  }
  const limits = { partitions, deadlineMs, maxInFlight }
  return new SessionStore({ ...rest, ...cluster({ redis: location.cluster, ...limits }) })
}
