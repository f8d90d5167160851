import { setTimeout as delay } from 'node:timers/promises'
import { parseInfo } from '@onetrip/session-store'
import type { Redis } from 'ioredis'

/** What Redis had allocated, replies that wait to be sent included. */
interface MemorySample {
  /** Since the watch began. */
  ms: number
  /** The most since the sample before. */
  bytes: number
}

export interface MemoryWatch {
  /** Before the work began. */
  baseBytes: number
  /** The most that was seen, by far more looks than there are samples. */
  peakBytes: number
  /** Every 25 ms. */
  samples: MemorySample[]
  /** Clients that the server closed because of their output buffers (`client-output-buffer-limit`). */
  closedByOutputLimit: number
  /** Clients that the server closed because all clients together had too much (`maxmemory-clients`). */
  closedByClientMemory: number
  /** When the first of them was closed, since the watch began; null when none was. */
  closedAfterMs: number | null
  /** What became of the writes of another, well-behaved client. */
  otherWrites: { done: number; refused: number }
}

const LOOK_MS = 2
const SAMPLE_MS = 25
const SETTLE_MS = 5_000

/**
 * Watches a server's memory until `work` is done, and writes a key with each sample, as another client
 * would.
 *
 * @param redis a connection for this alone; but for it, the server has no clients.
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
    ...{ baseBytes: before.used, peakBytes: before.used, samples: [] },
    ...{ closedByOutputLimit: 0, closedByClientMemory: 0, closedAfterMs: null },
    otherWrites: { done: 0, refused: 0 },
  }
  let most = 0
  const lookOnce = async () => {
    const now = await look(redis)
    const ms = performance.now() - start
    most = Math.max(most, now.used)
    watch.peakBytes = Math.max(watch.peakBytes, most)
    watch.closedByOutputLimit = now.closedByOutputLimit - before.closedByOutputLimit
    watch.closedByClientMemory = now.closedByClientMemory - before.closedByClientMemory
    if (watch.closedByOutputLimit + watch.closedByClientMemory > 0) watch.closedAfterMs ??= ms
    if (ms < (watch.samples.at(-1)?.ms ?? -SAMPLE_MS) + SAMPLE_MS) return
    watch.samples.push({ ms: Math.round(ms), bytes: most })
    most = 0
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

/** What the server tells once this connection is its only one, and what the others had is freed. */
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
