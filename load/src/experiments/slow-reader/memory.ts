import { setTimeout as delay } from 'node:timers/promises'
import { parseInfo } from '@onetrip/session-store'
import { until } from '@onetrip/stack/until.ts'
import type { Redis } from 'ioredis'

export const LEVEL_MS = 100
const LOOK_MS = 2
const WRITE_MS = 25
const SETTLE_MS = 5_000

/**
 * Watches a server's memory until `work` is done, and writes a key every 25 ms, as another client would.
 *
 * @param redis a connection for this alone; the server has no other client before `work`.
 * @returns `levels`: for each `LEVEL_MS`, the most bytes that the server had allocated beyond what it had
 *   before, replies that wait to be sent included; `closedAfter`: when it closed a client because of a
 *   limit, in seconds; `refusedWrites`: the share of the writes.
 * @throws what `work` throws; an Error when other clients do not go away.
 */
export async function watchMemory<Result>(
  redis: Redis,
  signal: AbortSignal,
  work: () => Promise<Result>,
) {
  const isAlone = async () => (await look(redis)).clients === 1
  if (!(await until(isAlone, { timeoutMs: SETTLE_MS, everyMs: LOOK_MS, signal }))) {
    throw new Error('the server has other clients')
  }
  const before = await look(redis)
  const start = performance.now()
  const levels: number[] = []
  let closedAfter: number | null = null
  const writes = { all: 0, refused: 0 }
  let isDone = false
  const watch = async () => {
    while (!isDone) {
      const now = await look(redis)
      const ms = performance.now() - start
      addLevel(levels, ms, now.used - before.used)
      if (now.closed > before.closed) closedAfter ??= ms / 1_000
      if (ms >= writes.all * WRITE_MS) {
        writes.all++
        if (!(await canWrite(redis))) writes.refused++
      }
      await delay(LOOK_MS)
    }
    return { levels, closedAfter, refusedWrites: writes.refused / writes.all }
  }
  const worked = work().finally(() => {
    isDone = true
  })
  const watched = watch()
  // Both are waited for, whichever fails: nothing of this run may reach into the next.
  await Promise.allSettled([worked, watched])
  return { result: await worked, ...(await watched) }
}

/** Where a busy machine left no time to look, the level is that of the step before. */
export function addLevel(levels: number[], ms: number, bytes: number): void {
  const step = Math.floor(ms / LEVEL_MS)
  while (levels.length < step) levels.push(levels.at(-1) ?? 0)
  levels[step] = Math.max(levels[step] ?? 0, bytes)
}

async function look(redis: Redis) {
  const fields = parseInfo(await redis.info('clients', 'memory', 'stats'))
  const number = (name: string) => Number(fields.get(name))
  return {
    clients: number('connected_clients'),
    used: number('used_memory'),
    closed: number('client_output_buffer_limit_disconnections') + number('evicted_clients'),
  }
}

/** Writes a key. False when Redis refuses it for want of memory. */
const canWrite = (redis: Redis) =>
  redis.set('slow-reader:other', 'x').then(
    () => true,
    (error: Error) => {
      if (error.message.startsWith('OOM')) return false
      throw error
    },
  )
