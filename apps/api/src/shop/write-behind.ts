import { type SessionStore, StoreError, type Update } from '@onetrip/session-store'

export interface WriteBehindOptions<Change> {
  store: Pick<SessionStore, 'run'>
  /** One update for all changes, by key. */
  update(changes: ReadonlyMap<string, Change>): Update<unknown>
  /** Two changes of a key as one; `older` came first. */
  merge(older: Change, newer: Change): Change
  /** How long a change waits for others, in milliseconds. */
  intervalMs: number
  /** Keys that may wait, beyond which changes of further keys are dropped. */
  maxPending: number
  /** So many keys were written, or their changes dropped. */
  onResult?(result: 'written' | 'dropped', keys: number): void
}

export interface WriteBehind<Change> {
  /** Returns at once. */
  add(key: string, change: Change): void
  /** Writes what waits now. */
  flush(): Promise<void>
  /** The same for the last time: what Redis does not take is dropped. */
  close(): Promise<void>
}

/** Keys in one round trip. */
const MAX_KEYS = 500

/**
 * Writes changes later and many at once: those of one interval in one round trip, several of a key as one.
 *
 * A crash loses the changes of one interval. What was certainly not sent waits for the next attempt. Anything
 * else that failed is dropped, because Redis may have executed it.
 */
export function writeBehind<Change>(options: WriteBehindOptions<Change>): WriteBehind<Change> {
  const { store, update, merge, intervalMs, maxPending, onResult = () => {} } = options
  let pending = new Map<string, Change>()
  let timer: NodeJS.Timeout | undefined
  let writing = Promise.resolve()
  let closed = false

  function add(key: string, change: Change): void {
    const older = pending.get(key)
    if (closed || (older === undefined && pending.size >= maxPending)) {
      onResult('dropped', 1)
      return
    }
    pending.set(key, older === undefined ? change : merge(older, change))
    plan()
  }

  function plan(): void {
    if (!closed) timer ??= setTimeout(() => void flush(), intervalMs).unref()
  }

  function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    writing = writing.then(write).then(() => {
      if (pending.size > 0) plan()
    })
    return writing
  }

  async function write(): Promise<void> {
    const all = [...pending]
    pending = new Map()
    for (let from = 0; from < all.length; from += MAX_KEYS) {
      const part = all.slice(from, from + MAX_KEYS)
      try {
        await store.run(update(new Map(part)))
        onResult('written', part.length)
      } catch (error) {
        const notSent = error instanceof StoreError && !error.mayHaveWritten && !closed
        if (notSent) putBack(part)
        else onResult('dropped', part.length)
      }
    }
  }

  function putBack(part: readonly [string, Change][]): void {
    for (const [key, older] of part) {
      const newer = pending.get(key)
      if (newer !== undefined) pending.set(key, merge(older, newer))
      else if (pending.size < maxPending) pending.set(key, older)
      else onResult('dropped', 1)
    }
  }

  return {
    add,
    flush,
    close() {
      closed = true
      return flush()
    },
  }
}
