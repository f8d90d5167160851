import { type CurrentCacheOptions, currentCache } from '@onetrip/session-store'
import {
  type Invalidations,
  type InvalidationsOptions,
  watchInvalidations,
} from './invalidations.ts'

export interface ClientCacheOptions<Value>
  extends Omit<InvalidationsOptions, 'onChange' | 'onLost'>,
    Omit<CurrentCacheOptions<Value>, 'isCurrent'> {
  /** 0: no cache and no connection. */
  maxEntries: number
}

interface ClientCache<Value> {
  /**
   * Returns the value of a key. It is stale by at most `checkEveryMs` plus `deadlineMs`, and usually only by
   * the latency of a message from Redis. Do not modify it: callers share it. The first call opens the
   * connection.
   *
   * @throws The errors of `read`.
   */
  get(key: string): Promise<Value>
  readonly entries: number
  close(): void
}

/**
 * A local cache of keys of Redis, which reports changed keys (`watchInvalidations`). While reports may be lost, the
 * cache is empty and every read goes to Redis.
 */
export function clientCache<Value>(options: ClientCacheOptions<Value>): ClientCache<Value> {
  let invalidations: Invalidations | undefined
  let closed = false
  const cache = currentCache({ ...options, isCurrent })

  function isCurrent(): boolean {
    if (options.maxEntries === 0 || closed) return false
    invalidations ??= watchInvalidations({
      ...options,
      onChange(keys) {
        if (keys) for (const key of keys) cache.delete(key)
        else cache.clear()
      },
      onLost: cache.clear,
    })
    return invalidations.complete
  }

  return {
    get: cache.get,
    get entries() {
      return cache.entries
    },
    close() {
      closed = true
      invalidations?.close()
      cache.clear()
    },
  }
}
