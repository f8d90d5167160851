import { setTimeout as delay } from 'node:timers/promises'
import { parseInfo } from '@onetrip/session-store'
import type { Redis } from 'ioredis'

/** What Redis had allocated, replies that wait to be sent included. */
export interface MemoryWatch {
  /** Before the work began. */
  baseBytes: number
  peakBytes: number
  /** The most beyond `baseBytes` in each `LEVEL_MS` from the beginning on. */
  levels: number[]
  /** The setting because of which Redis closed a client; null when it closed none. */
  closedBy: 'client-output-buffer-limit' | 'maxmemory-clients' | null
  /** When it did, since the watch began. */
  closedAfterMs: number | null
  /** What became of the writes of another, well-behaved client. */
  otherWrites: { done: number; refused: number }
}

export const LEVEL_MS = 100
const LOOK_MS = 2
const WRITE_MS = 25
const SETTLE_MS = 5_000

/**
 * Watches a server's memory until `work` is done, and writes a key every 25 ms, as another client would.
 *
 * @param redis a connection for this alone; the server has no other client before `work`.
 * @throws what `work` throws; an Error when other clients do not go away.
 */
export async function watchMemory<Result>(
  redis: Redis,
  signal: AbortSignal,
  work: () => Promise<Result>,
): Promise<MemoryWatch & { result: Result }> {
  const before = await aloneWith(redis, signal)
  const start = performance.now()
  const watch: MemoryWatch = {
    ...{ baseBytes: before.used, peakBytes: before.used, levels: [] },
    ...{ closedBy: null, closedAfterMs: null, otherWrites: { done: 0, refused: 0 } },
  }
  let writeAt = 0
  const lookOnce = async () => {
    const now = await look(redis)
    const ms = performance.now() - start
    watch.peakBytes = Math.max(watch.peakBytes, now.used)
    addLevel(watch.levels, ms, now.used - before.used)
    if (watch.closedBy === null) {
      if (now.closedByOutputLimit > before.closedByOutputLimit) {
        watch.closedBy = 'client-output-buffer-limit'
      } else if (now.closedByClientMemory > before.closedByClientMemory) {
        watch.closedBy = 'maxmemory-clients'
      }
      if (watch.closedBy !== null) watch.closedAfterMs = ms
    }
    if (ms < writeAt) return
    writeAt = ms + WRITE_MS
    watch.otherWrites[(await isRefused(redis)) ? 'refused' : 'done']++
  }
  await lookOnce()
  let working = true
  const result = work().finally(() => {
    working = false
  })
  const looking = async () => {
    while (working) {
      await lookOnce()
      await delay(LOOK_MS)
    }
  }
  // Both are waited for, whichever fails: nothing of this run may reach into the next.
  const [done, looked] = await Promise.allSettled([result, looking()])
  if (done.status === 'rejected') throw done.reason
  if (looked.status === 'rejected') throw looked.reason
  return { ...watch, result: done.value }
}

/** Where a busy machine left no time to look, the level is that of the step before. */
export function addLevel(levels: number[], ms: number, bytes: number): void {
  const step = Math.floor(ms / LEVEL_MS)
  while (levels.length < step) levels.push(levels.at(-1) ?? 0)
  levels[step] = Math.max(levels[step] ?? 0, bytes)
}

/** What the server reports once this connection is its only one, and what the others had is freed. */
async function aloneWith(redis: Redis, signal: AbortSignal) {
  const deadline = performance.now() + SETTLE_MS
  for (;;) {
    const now = await look(redis)
    if (now.clients === 1) return now
    if (performance.now() > deadline) throw new Error('the server has other clients')
    await delay(LOOK_MS, undefined, { signal })
  }
}

async function look(redis: Redis) {
  const fields = parseInfo(await redis.info('clients', 'memory', 'stats'))
  const number = (name: string) => Number(fields.get(name) ?? Number.NaN)
  return {
    clients: number('connected_clients'),
    used: number('used_memory'),
    closedByOutputLimit: number('client_output_buffer_limit_disconnections'),
    closedByClientMemory: number('evicted_clients'),
  }
}

async function isRefused(redis: Redis): Promise<boolean> {
  try {
    await redis.set('slow-reader:other', 'x')
    return false
  } catch (error) {
    if (error instanceof Error && error.message.startsWith('OOM')) return true
    throw error
  }
}
