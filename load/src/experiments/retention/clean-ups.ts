import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import type { JanitorOptions } from '@onetrip/session-store'
import { newSecret } from '@onetrip/stack/places.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import type { Redis } from 'ioredis'
import type { RedisServer } from '../../drivers/redis/server.ts'
import type { Run } from '../../experiment/experiment.ts'
import { figure } from '../../experiment/figures.ts'
import { layouts } from './fill.ts'
import type { JanitorWork } from './janitor-thread.ts'

export interface RetentionOptions {
  sessions: number
  kept: number
  batchSizes: number[]
  layout: keyof typeof layouts
}

type RetentionRun = Run<RetentionOptions>

/** Removes sessions; returns how many. */
export type CleanUp = () => Promise<number>

const NONE = 'none'
const AT_ONCE = 'one ZREMRANGEBYRANK'
const SWEEP = 'sweep afterwards'
const janitorOf = (batchSize: number) => `janitor (batches of ${batchSize})`
const QUIET_MS = 3_000
const NEVER = Number.POSITIVE_INFINITY

export const cleanUpNames = ({ batchSizes }: RetentionOptions) => [
  NONE,
  ...batchSizes.map(janitorOf),
  AT_ONCE,
  SWEEP,
]

/** Prepares a clean-up; what it starts ends with `undo`. */
export async function cleanUpOf(
  name: string,
  { server, redis }: { server: RedisServer; redis: Redis },
  run: RetentionRun,
  undo: AsyncDisposableStack,
): Promise<CleanUp> {
  const { options, context } = run
  if (name === NONE) return () => delay(QUIET_MS, 0, { signal: context.signal })
  if (name === AT_ONCE) return () => trimAtOnce(redis, options)
  if (name === SWEEP) {
    const limits = { maxSessions: NEVER, rescaleEverySeconds: NEVER, sweepEverySeconds: 0 }
    return await janitor(limits, await trimAtOnce(redis, options), server, run, undo)
  }
  const limits = {
    maxSessions: options.kept,
    batchSize: options.batchSizes.find((size) => janitorOf(size) === name) ?? 0,
    ...{ rescaleEverySeconds: NEVER, sweepEverySeconds: NEVER },
  }
  // The victim's session counts towards the limit, too.
  return await janitor(limits, options.sessions + 1, server, run, undo)
}

/** A janitor that is connected already, so that its start is not measured. */
async function janitor(
  limits: JanitorOptions,
  expected: number,
  { url }: RedisServer,
  { options: { layout }, context: { signal }, update }: RetentionRun,
  undo: AsyncDisposableStack,
): Promise<CleanUp> {
  const untilSwept = limits.sweepEverySeconds === 0
  const worker = new Worker(new URL('./janitor-thread.ts', import.meta.url), {
    workerData: { url, secret: newSecret(), layout, limits, untilSwept } satisfies JanitorWork,
  })
  undo.defer(async () => void (await worker.terminate()))
  const exit = once(worker, 'exit', { signal })
  exit.catch(() => {}) // the promise that is awaited rejects, too
  await once(worker, 'message', { signal })
  return async () => {
    let removed = 0
    worker.on('message', (more: number) => {
      removed += more
      update(`${figure(removed)} of ${figure(expected)} sessions`)
    })
    worker.postMessage('go')
    await exit
    if (removed === expected) return removed
    throw new Problem(`The janitor removed ${removed} sessions instead of ${expected}.`)
  }
}

/** The textbook's ZREMRANGEBYRANK, for all sessions at once; their other records stay. */
async function trimAtOnce(redis: Redis, options: RetentionOptions): Promise<number> {
  const parts = layouts[options.layout].parts()
  const share = Math.ceil(options.sessions / parts.length)
  let removed = 0
  for (const { recent } of parts) removed += await redis.zremrangebyrank(recent, 0, share - 1)
  return removed
}
