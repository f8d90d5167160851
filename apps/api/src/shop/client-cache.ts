import type { Invalidations, InvalidationsOptions } from './invalidations.ts'
import { watchInvalidations } from './invalidations.ts'

/** How a value was found: in the cache, in Redis, or in Redis because changes may have been missed. */
export type CacheRead = 'hit' | 'miss' | 'bypass'

export interface ClientCacheOptions<Value>
  extends Omit<InvalidationsOptions, 'onChange' | 'onLost'> {
  /** Values that are kept, those used last; 0: no cache, and no connection. */
  maxEntries: number
  /** Reads the value of a key from Redis. */
  read(key: string): Promise<Value>
  onRead?(how: CacheRead): void
}

export interface ClientCache<Value> {
  /**
   * The value of a key, at most `checkEveryMs` plus `deadlineMs` old, and usually as old as a message from
   * Redis takes. It is shared: do not change it. The first call opens the connection.
   *
   * @throws what `read` throws.
   */
  get(key: string): Promise<Value>
  readonly entries: number
  close(): void
}

/**
 * A local cache in front of Redis, which Redis keeps right by reporting changed keys (`watchInvalidations`).
 *
 * An entry is the promise of a read, so it is there before the reply: a change meanwhile removes it, and the old
 * value that then arrives is only for those who asked before. While changes may be missed, nothing is kept
 * and every read goes to Redis.
 */
export function clientCache<Value>(options: ClientCacheOptions<Value>): ClientCache<Value> {
  const { maxEntries, read, onRead = () => {} } = options
  /** The one used last is the last. */
  const entries = new Map<string, Promise<Value>>()
  let invalidations: Invalidations | undefined
  let closed = false

  const watched = () => {
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

  function readToKeep(key: string): Promise<Value> {
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
      if (!watched()) {
        onRead('bypass')
        return read(key)
      }
      const found = entries.get(key)
      if (found === undefined) {
        onRead('miss')
        return readToKeep(key)
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
