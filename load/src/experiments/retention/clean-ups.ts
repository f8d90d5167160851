import { setTimeout as delay } from 'node:timers/promises'
import {
  articleKeys,
  type RetentionEvent,
  retentionChannel,
  SessionStore,
} from '@onetrip/session-store'
import { newSecret } from '@onetrip/stack/places.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import type { Redis } from 'ioredis'
import type { Run } from '../experiment.ts'

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
const janitorOf = (batchSize: number) => `janitor (batches of ${batchSize})`
const QUIET_MS = 3_000
const NEVER = Number.POSITIVE_INFINITY

export const cleanUpNames = ({ batchSizes }: RetentionOptions) => [
  NONE,
  ...batchSizes.map(janitorOf),
  AT_ONCE,
  SWEEP,
]

/** Prepares a clean-up. */
export async function cleanUpOf(
  name: string,
  url: string,
  redis: Redis,
  { options: { kept, sessions, batchSizes }, context: { signal, defer } }: Run<RetentionOptions>,
): Promise<CleanUp> {
  // Trims all sessions with one command. Other records of the sessions remain.
  const trimAtOnce = () => redis.zremrangebyrank(articleKeys.recent(''), 0, sessions - 1)
  if (name === NONE) return () => delay(QUIET_MS, 0, { signal })
  if (name === AT_ONCE) return trimAtOnce
  const isSweep = name === SWEEP
  if (isSweep) await trimAtOnce()
  const batchSize = batchSizes.find((size) => janitorOf(size) === name)
  // A store of its own, as in another process.
  const tokens = { secrets: [newSecret()] }
  const store = new SessionStore({ redis: url, tokens, janitor: 'elsewhere' })
  defer(() => store.close())
  await store.ready()
  const janitor = store.janitor({
    rescaleEverySeconds: NEVER,
    ...(isSweep
      ? { maxSessions: NEVER, sweepEverySeconds: 0, sweepKeys: true }
      : { maxSessions: kept, sweepEverySeconds: NEVER, ...(batchSize && { batchSize }) }),
  })
  let removed = 0
  const count = (message: unknown) => {
    const event = message as RetentionEvent
    if (event.type === 'step') removed += event.evicted + event.swept
  }
  // The session of the observer counts towards the limit, too.
  const expected = isSweep ? sessions : sessions + 1
  return async () => {
    retentionChannel.subscribe(count)
    while ((await janitor.runOnce()).sweeping && isSweep) signal.throwIfAborted()
    retentionChannel.unsubscribe(count)
    if (removed === expected) return removed
    throw new Problem(`The janitor removed ${removed} sessions, but ${expected} were expected.`)
  }
}
