import { setTimeout as delay } from 'node:timers/promises'
import { StoreError } from '../core/errors.ts'
import { checkNumber } from '../core/input.ts'
import type { Keys } from '../core/keys.ts'
import type { Command, Operation, Reply } from '../core/operation.ts'
import { FINISHED } from '../core/retention/janitor-lock.ts'
import { batches, walk } from '../core/sessions/walk.ts'
import { migrationKeys } from './keys.ts'
import { moveCounts } from './move-counts.ts'
import { createMover, MAX_SESSIONS } from './mover.ts'
import {
  beginMigration,
  checkState,
  FINISHING,
  type MigrationSides,
  OPENED,
  setState,
} from './state.ts'

export interface MigrationSurvey {
  /** Whether a bridge with the target as home has started to serve. */
  opened: boolean
  /** The number of sessions in the source. */
  sessions: number
  /** Sessions of interrupted moves: they have left the source and may not have arrived. */
  moving: number
  /** The number of items with counts in the source. */
  items: number
}

export interface MigrationProgress {
  phase: 'sessions' | 'counts'
  /** Sessions that arrived in the target. */
  moved: number
  /** Items whose counts were compared. */
  items: number
  /** The number of views by which the target's counts have changed. */
  views: number
}

export interface MigrateOptions {
  /** Maximum rate, in sessions and items per second. Default: unlimited. */
  rate?: number
  /** Sessions that one script moves, 1 to 100; four scripts are in flight. Default 50. */
  batchSize?: number
  /** Called after each step. */
  onProgress?: (progress: MigrationProgress) => void
  /** Stops after the step in progress; the call then rejects with the signal's reason. */
  signal?: AbortSignal
}

const IN_FLIGHT = 4
const ITEMS_PER_STEP = 500
const MAX_PASSES = 3

const sizes = (keys: readonly string[], command: string): Command[] =>
  keys.map((key) => [command, key])
const sum = (replies: readonly Reply[]) =>
  replies.reduce<number>((total, size) => total + Number(size), 0)

/** Counts what there is to move. Keys of the source: janitorTasks, login, moving, item counts. */
function survey(keys: Keys): Operation<MigrationSurvey> {
  const logins = keys.parts().map(({ login }) => login)
  const moving = migrationKeys(keys).allMoving()
  const endOfLogins = logins.length
  const endOfMoving = endOfLogins + moving.length
  return {
    commands: [
      ['HEXISTS', keys.janitorTasks(), OPENED],
      ...sizes(logins, 'HLEN'),
      ...sizes(moving, 'HLEN'),
      ...sizes(keys.allPopular(), 'ZCARD'),
    ],
    readOnly: true,
    read: ([opened, ...replies]) => ({
      opened: opened === 1,
      sessions: sum(replies.slice(0, endOfLogins)),
      moving: sum(replies.slice(endOfLogins, endOfMoving)),
      items: sum(replies.slice(endOfMoving)),
    }),
  }
}

/**
 * Counts what a migration would move. Writes nothing.
 *
 * @throws StoreError as `migrate`.
 */
export async function surveyMigration(sides: MigrationSides): Promise<MigrationSurvey> {
  await checkState(sides)
  return await sides.from.store.run(survey(sides.from.keys))
}

/**
 * Moves all sessions and item counts from one store to the other while both serve. Meanwhile every process that
 * serves must use `bridgeStores`. Call it again after a failure, or if sessions were started in the source since;
 * nothing moves or counts twice.
 *
 * @returns What it moved.
 * @throws StoreError with the codes of `SessionStore.run`, and `ONETRIP_INVALID_INPUT` if the migration is
 *   finished or was started with another number of partitions, or if an option is out of range.
 */
export async function migrate(
  sides: MigrationSides,
  options: MigrateOptions = {},
): Promise<MigrationProgress> {
  const { rate = Number.POSITIVE_INFINITY, batchSize = 50, onProgress, signal } = options
  checkNumber('rate', rate, { min: 1 })
  checkNumber('batchSize', batchSize, { min: 1, max: MAX_SESSIONS, integer: true })
  const { from } = sides
  const progress: MigrationProgress = { phase: 'sessions', moved: 0, items: 0, views: 0 }
  const startedAt = performance.now()
  const mover = createMover(sides)

  async function stepDone(): Promise<void> {
    onProgress?.({ ...progress })
    const aheadMs =
      (1000 * (progress.moved + progress.items)) / rate - (performance.now() - startedAt)
    if (aheadMs > 0) await delay(aheadMs, undefined, { signal }).catch(() => undefined)
    signal?.throwIfAborted()
  }

  /** Moves the sessions that one walk over the source finds. Returns how many arrived. */
  async function pass(): Promise<number> {
    const before = progress.moved
    for (const { login } of from.keys.parts()) {
      const count = IN_FLIGHT * batchSize
      for await (const entries of walk(from.store, 'HSCAN', login, { count })) {
        for (const group of batches([...batches(entries, batchSize)], IN_FLIGHT)) {
          const moves = await Promise.allSettled(group.map((batch) => mover.moveUsers(batch)))
          for (const move of moves) if (move.status === 'fulfilled') progress.moved += move.value
          for (const move of moves) if (move.status === 'rejected') throw move.reason
          await stepDone()
        }
      }
    }
    return progress.moved - before
  }

  signal?.throwIfAborted()
  await beginMigration(sides)
  onProgress?.({ ...progress })
  progress.moved += await mover.completeAll()
  // A walk may miss sessions that start meanwhile. If sessions keep starting in the source, some remain.
  for (let passes = 0; passes < MAX_PASSES && (await pass()) > 0; passes++);
  progress.phase = 'counts'
  for await (const { items, views } of moveCounts(sides, ITEMS_PER_STEP)) {
    progress.items += items
    progress.views += views
    await stepDone()
  }
  return { ...progress }
}

/** KEYS: moved or ledger. Deletes the key and sets the empty field, which makes late scripts fail. */
const SEAL = `
redis.call('UNLINK', KEYS[1])
return redis.call('HSET', KEYS[1], '', '')`

/** Deletes the bookkeeping of the migration. Keys: moved, ledger. */
function seal(keys: Keys): Operation<void> {
  const { allMoved, allLedgers } = migrationKeys(keys)
  return {
    commands: [...allMoved(), ...allLedgers()].map((key): Command => ['EVAL', SEAL, 1, key]),
    readOnly: false,
    read: () => undefined,
  }
}

/**
 * Finishes a migration: copies the last counts, deletes the bookkeeping in the target, and lets the janitor halve
 * counts again. Call it when every process uses only the target. After a failure, call it again.
 *
 * @throws StoreError as `migrate`; `ONETRIP_INVALID_INPUT` if the source still holds sessions.
 */
export async function finishMigration(sides: MigrationSides): Promise<void> {
  const { from, to } = sides
  if ((await checkState(sides)) !== FINISHING) {
    const { sessions, moving } = await from.store.run(survey(from.keys))
    if (sessions + moving > 0) {
      throw new StoreError(
        'ONETRIP_INVALID_INPUT',
        `the source still holds ${sessions + moving} sessions: migrate them first`,
      )
    }
    await beginMigration(sides)
    for await (const _ of moveCounts(sides, ITEMS_PER_STEP));
    await setState(to, FINISHING)
  }
  await to.store.run(seal(to.keys))
  await setState(from, FINISHED)
  await setState(to, FINISHED)
}
