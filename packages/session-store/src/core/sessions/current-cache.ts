/** hit: from the cache; miss: from Redis; bypass: from Redis, because the cache is off or may be stale. */
type CacheRead = 'hit' | 'miss' | 'bypass'

export interface CurrentCacheOptions<Value> {
  /** Maximum number of entries; the least recently used one is dropped. */
  maxEntries: number
  /** Reads the value of a key from Redis. */
  read(key: string): Promise<Value>
  /** Whether all changes are being reported. If not, every read goes to Redis. */
  isCurrent(): boolean
  onRead?(result: CacheRead): void
}

/** See `currentCache`. */
export interface CurrentCache<Value> {
  /** Returns the value of a key. Do not modify it: callers share it. @throws The errors of `read`. */
  get(key: string): Promise<Value>
  /** Call it when the value has changed. */
  delete(key: string): void
  /** Call it when any value may have changed, or when changes may have been missed. */
  clear(): void
  readonly entries: number
}

/**
 * A local cache of values whose changes are reported, by messages from Redis.
 *
 * An entry is the promise of a read, so it exists before the reply arrives. If the value changes in between, the entry
 * is removed, and only earlier callers get the old value.
 */
export function currentCache<Value>({
  maxEntries,
  read,
  isCurrent,
  onRead = () => {},
}: CurrentCacheOptions<Value>): CurrentCache<Value> {
  /** In order of use, the most recently used last. */
  const entries = new Map<string, Promise<Value>>()

  function readAndKeep(key: string): Promise<Value> {
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
        return readAndKeep(key)
      }
      onRead('hit')
      entries.delete(key)
      entries.set(key, found)
      return found
    },
    delete: (key) => void entries.delete(key),
    clear: () => entries.clear(),
    get entries() {
      return entries.size
    },
  }
}
