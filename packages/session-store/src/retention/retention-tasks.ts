import type { RetentionStep } from '../diagnostics.ts'
import { StoreError } from '../errors.ts'
import type { Keys } from '../keys.ts'
import { MAX_LOGIN_SECONDS } from '../operations/sessions.ts'
import { errorKind } from '../redis/outcomes.ts'
import type { Runner } from '../redis/runner.ts'
import { chooseDrops, dropItems, halveCounts, leastViewed } from './item-counts.ts'
import * as retention from './retention.ts'
import { batches, walk } from './walk.ts'

export interface RetentionContext {
  readonly runner: Runner
  readonly keys: Keys
  /** When the current run started, Unix seconds with fraction. */
  now(): number
  readonly maxSessions: number
  readonly idleSeconds: number
  readonly batchSize: number
  readonly keptItems: number
  readonly sweepKeys: boolean
}

/** The result of one step of a task. A step is a few round trips, each with at most one batch. */
export type TaskStep = Partial<Omit<RetentionStep, 'durationMs'>>

/** A login that started before this time is complete or has failed. Unix seconds. */
export const settledBefore = ({ now }: RetentionContext): number => now() - MAX_LOGIN_SECONDS

/**
 * How many entries to read from each part: four times the average share of a batch. Then most of a batch can be
 * chosen even if the oldest entries are unevenly spread.
 */
const readOfEachPart = (batchSize: number, parts: number) =>
  Math.min(batchSize, Math.ceil((4 * batchSize) / parts))

/** Ends sessions that are idle or beyond the maximum, oldest first, batch by batch. */
export async function* evict(context: RetentionContext): AsyncGenerator<TaskStep> {
  const { runner, keys, maxSessions, idleSeconds, batchSize } = context
  const limit = readOfEachPart(batchSize, keys.parts().length)
  for (;;) {
    const parts = await runner.run(retention.oldestSessions(keys, limit))
    const idleBefore = context.now() - idleSeconds
    const limits = { maxSessions, idleBefore, batchSize }
    const evictions = retention.chooseEvictions(parts, limits)
    if (evictions.length === 0) return
    const times = { idleBefore, settledBefore: settledBefore(context) }
    const ended = await runner.run(retention.evictSessions(keys, evictions, times))
    await forget(context, ended)
    const sessions = parts.reduce((sum, { size }) => sum + size, 0) - ended.length
    yield { evicted: ended.length, surplus: Math.max(0, sessions - maxSessions) }
    // All of them were refreshed meanwhile; the next run checks again.
    if (ended.length === 0) return
  }
}

/**
 * Removes ended sessions from the users' lists. It is a separate step because the lists are in other slots of a
 * cluster. Reading a list removes entries that remain after a failure.
 */
export async function forget(
  context: RetentionContext,
  ended: readonly retention.EndedSession[],
): Promise<void> {
  const { runner, keys } = context
  const operation = retention.forgetEnded(keys, ended)
  if (operation.commands.length === 0) return
  try {
    await runner.run(operation)
  } catch (error) {
    // Redis executed the other commands of the operation. The sweep warns about the key.
    if (!isOtherType(error)) throw error
  }
}

/** Whether Redis refused a command because its key has another type: it belongs to another program. */
export const isOtherType = (error: unknown): boolean =>
  error instanceof StoreError &&
  error.cause instanceof Error &&
  errorKind(error.cause) === 'WRONGTYPE'

/** Drops the least viewed items, then halves the counts of all others, each once. */
export async function* rescale(context: RetentionContext): AsyncGenerator<TaskStep> {
  const { runner, keys, keptItems, batchSize } = context
  const limit = readOfEachPart(batchSize, keys.allPopular().length)
  for (;;) {
    const parts = await runner.run(leastViewed(keys, limit))
    const drops = chooseDrops(parts, { keptItems, batchSize })
    if (drops.length === 0) break
    yield { itemsDropped: await runner.run(dropItems(drops)) }
  }
  for (const key of keys.allPopular()) yield* halveAll(context, key)
}

async function* halveAll(
  { runner, batchSize }: RetentionContext,
  key: string,
): AsyncGenerator<TaskStep> {
  // Collects all names first: ZSCAN may return an item twice, or miss it, if its score changes during the walk.
  const items = new Set<string>()
  for await (const entries of walk(runner, 'ZSCAN', key, { count: batchSize })) {
    for (const [item] of entries) items.add(item)
    yield {}
  }
  for (const batch of batches([...items], batchSize)) {
    const { halved, gone } = await runner.run(halveCounts(key, batch))
    yield { itemsHalved: halved, itemsDropped: gone }
  }
}
