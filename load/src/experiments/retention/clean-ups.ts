import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { articleKeys } from '@onetrip/session-store'
import { Problem } from '@onetrip/stack/problem.ts'
import type { Redis } from 'ioredis'
import type { Run } from '../../experiment/experiment.ts'
import type { JanitorWork } from './janitor-thread.ts'

export interface RetentionOptions {
  sessions: number
  kept: number
  batchSizes: number[]
}

/** Removes sessions and returns their number. */
export type CleanUp = () => Promise<number>

const NONE = 'none'
const AT_ONCE = 'one ZREMRANGEBYRANK'
const SWEEP = 'sweep afterwards'
const piecesOf = (size: number) => `ZREMRANGEBYRANK (${size} at a time)`
const janitorOf = (batchSize: number) => `janitor (batches of ${batchSize})`
const QUIET_MS = 3_000
const NEVER = Number.POSITIVE_INFINITY

export const cleanUpNames = ({ batchSizes }: RetentionOptions) => [
  NONE,
  ...batchSizes.map(janitorOf),
  AT_ONCE,
  ...batchSizes.map(piecesOf),
  SWEEP,
]

/** Prepares a clean-up. */
export async function cleanUpOf(
  name: string,
  url: string,
  redis: Redis,
  run: Run<RetentionOptions>,
): Promise<CleanUp> {
  const { kept, sessions, batchSizes } = run.options
  // Trims all sessions with one command. Other records of the sessions remain.
  const trimAtOnce = () => redis.zremrangebyrank(articleKeys.recent(''), 0, sessions - 1)
  if (name === NONE) return () => delay(QUIET_MS, 0, { signal: run.context.signal })
  if (name === AT_ONCE) return trimAtOnce
  const piece = batchSizes.find((size) => piecesOf(size) === name)
  if (piece) return () => trimInPieces(redis, sessions, piece)
  if (name === SWEEP) {
    await trimAtOnce()
    const sweepAll = { sweepEverySeconds: 0, sweepKeys: true }
    const limits = { maxSessions: NEVER, rescaleEverySeconds: NEVER, ...sweepAll }
    return await janitor({ url, limits, untilSwept: true }, sessions, run)
  }
  const batchSize = batchSizes.find((size) => janitorOf(size) === name) ?? 0
  const never = { rescaleEverySeconds: NEVER, sweepEverySeconds: NEVER }
  const limits = { maxSessions: kept, batchSize, ...never }
  // The session of the observer counts towards the limit, too.
  return await janitor({ url, limits, untilSwept: false }, sessions + 1, run)
}

/** Trims with several commands. Redis serves other clients between them. */
async function trimInPieces(redis: Redis, sessions: number, size: number): Promise<number> {
  let removed = 0
  while (removed < sessions) {
    const last = Math.min(size, sessions - removed) - 1
    removed += await redis.zremrangebyrank(articleKeys.recent(''), 0, last)
  }
  return removed
}

/** Starts and connects a janitor, so that its start is not measured. */
async function janitor(
  workerData: JanitorWork,
  expected: number,
  { context: { signal, defer } }: Run<RetentionOptions>,
): Promise<CleanUp> {
  const worker = new Worker(new URL('./janitor-thread.ts', import.meta.url), { workerData })
  defer(() => worker.terminate())
  await once(worker, 'message', { signal })
  const done = once(worker, 'message', { signal })
  done.catch(() => {}) // avoids an unhandled rejection before the promise is awaited
  return async () => {
    worker.postMessage('go')
    const [removed] = await done
    if (removed === expected) return removed
    throw new Problem(`The janitor removed ${removed} sessions, but ${expected} were expected.`)
  }
}
