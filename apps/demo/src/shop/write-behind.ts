import { type Operation, type SessionStore, StoreError } from '@onetrip/session-store'

export interface WriteBehindOptions<Change> {
  store: Pick<SessionStore, 'run'>
  /** Creates one operation for the changes of several keys. */
  operation(changes: ReadonlyMap<string, Change>): Operation<unknown>
  /** Merges two changes of a key. */
  merge(older: Change, newer: Change): Change
  /** Interval of writes, in milliseconds. */
  intervalMs: number
  /** Maximum keys with pending changes; changes of further keys are dropped. */
  maxPending: number
  /** Called with the number of keys whose changes were written or dropped. */
  onResult?(result: 'written' | 'dropped', keys: number): void
}

interface WriteBehind<Change> {
  /** Adds a change without waiting for the write. */
  add(key: string, change: Change): void
  /** Writes the pending changes now. */
  flush(): Promise<void>
  /** Writes the pending changes a last time. Drops them if the write fails. */
  close(): Promise<void>
}

/** Maximum keys per round trip. */
const MAX_KEYS = 500

/**
 * Write-behind: collects the changes of an interval, merges those of the same key, and writes them in one
 * round trip.
 *
 * A crash loses the changes of one interval. A failed write is retried only if it certainly wrote nothing;
 * otherwise its changes are dropped, because Redis may have executed them.
 */
export function writeBehind<Change>(options: WriteBehindOptions<Change>): WriteBehind<Change> {
  const { store, operation, merge, intervalMs, maxPending, onResult = () => {} } = options
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
    schedule()
  }

  function schedule(): void {
    if (!closed) timer ??= setTimeout(() => void flush(), intervalMs).unref()
  }

  function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    writing = writing.then(write).then(() => {
      if (pending.size > 0) schedule()
    })
    return writing
  }

  async function write(): Promise<void> {
    const all = [...pending]
    pending = new Map()
    for (let from = 0; from < all.length; from += MAX_KEYS) {
      const part = all.slice(from, from + MAX_KEYS)
      try {
        await store.run(operation(new Map(part)))
        onResult('written', part.length)
      } catch (error) {
        const wroteNothing = error instanceof StoreError && !error.mayHaveWritten
        if (wroteNothing && !closed) putBack(part)
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
