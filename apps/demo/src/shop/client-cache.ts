import {
  type Invalidations,
  type InvalidationsOptions,
  watchInvalidations,
} from './invalidations.ts'

/** hit: from the cache; miss: from Redis; bypass: from Redis, because the cache may be stale or is off. */
export type CacheRead = 'hit' | 'miss' | 'bypass'

export interface ClientCacheOptions<Value>
  extends Omit<InvalidationsOptions, 'onChange' | 'onLost'> {
  /** Maximum entries; the least recently used one is evicted. 0: no cache and no connection. */
  maxEntries: number
  /** Reads the value of a key from Redis. */
  read(key: string): Promise<Value>
  onRead?(result: CacheRead): void
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
 * A local cache. Redis invalidates its entries by reporting changed keys (`watchInvalidations`).
 *
 * An entry is the promise of a read, so it exists before the reply arrives. If the key changes in between,
 * the entry is removed, and only earlier callers get the old value. While invalidations may be lost, the
 * cache is empty and every read goes to Redis.
 */
export function clientCache<Value>(options: ClientCacheOptions<Value>): ClientCache<Value> {
  const { maxEntries, read, onRead = () => {} } = options
  /** In order of use, the most recently used last. */
  const entries = new Map<string, Promise<Value>>()
  let invalidations: Invalidations | undefined
  let closed = false

  const isCurrent = () => {
    if (maxEntries === 0 || closed) return false
    invalidations ??= watchInvalidations({
      ...options,
      onChange(keys) {
        if (keys) for (const key of keys) entries.delete(key)
        else entries.clear()
      },
      onLost: () => entries.clear(),
    })
    return invalidations.complete
  }

  function readAndCache(key: string): Promise<Value> {
    const value = read(key)
    entries.set(key, value)
    value.catch(() => {
      if (entries.get(key) === value) entries.delete(key)
    })
    if (entries.size > maxEntries) {
      const [oldest = key] = entries.keys()
      entries.delete(oldest)
    }
    return value
  }

  return {
    get(key) {
      if (!isCurrent()) {
        onRead('bypass')
        return read(key)
      }
      const found = entries.get(key)
      if (found === undefined) {
        onRead('miss')
        return readAndCache(key)
      }
      onRead('hit')
      entries.delete(key)
      entries.set(key, found)
      return found
    },
    get entries() {
      return entries.size
    },
    close() {
      closed = true
      invalidations?.close()
      entries.clear()
    },
  }
}
