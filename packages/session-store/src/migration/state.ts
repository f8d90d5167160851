import { StoreError } from '../core/errors.ts'
import type { Keys } from '../core/keys.ts'
import type { Command, Operation } from '../core/operation.ts'
import { checkPartitions } from '../core/partitions.ts'
import { FINISHED, MIGRATION } from '../core/retention/janitor-lock.ts'
import type { SessionStore } from '../core/store.ts'

/** One side of a migration. */
export interface MigrationSide {
  readonly store: Pick<SessionStore, 'run'>
  /** The key names of the store, with its prefix if it has one (`prefixedKeys`). */
  readonly keys: Keys
}

/** The two sides of a migration. */
export interface MigrationSides {
  /** A single Redis: its keys may be in several slots. */
  readonly from: MigrationSide
  readonly to: MigrationSide
}

/** A state. The previous state is the target's number of partitions, the next one is `FINISHED`. */
export const FINISHING = 'finishing'

/** Field of the source's `janitorTasks`: a bridge with the target as home has started to serve. */
export const OPENED = 'migration:opened'

const write = (commands: readonly Command[]): Operation<void> => ({
  commands,
  readOnly: false,
  read: () => undefined,
})

export async function setState({ store, keys }: MigrationSide, state: string): Promise<void> {
  await store.run(write([['HSET', keys.janitorTasks(), MIGRATION, state]]))
}

export async function setOpened({ store, keys }: MigrationSide): Promise<void> {
  await store.run(write([['HSET', keys.janitorTasks(), OPENED, 1]]))
}

/** The state of one side; undefined if no migration was started. Keys: janitorTasks. */
const stateOf = (keys: Keys): Operation<string | undefined> => ({
  commands: [['HGET', keys.janitorTasks(), MIGRATION]],
  readOnly: true,
  read: ([reply]) => (typeof reply === 'string' ? reply : undefined),
})

/**
 * Returns the state of the target; undefined if no migration was started.
 *
 * @throws StoreError `ONETRIP_INVALID_INPUT` if the migration is finished, or was started with another number of
 *   partitions.
 */
export async function checkState({ from, to }: MigrationSides): Promise<string | undefined> {
  const target = await to.store.run(stateOf(to.keys))
  if (target === FINISHING) return target
  const partitions = to.keys.parts().length
  const source = await from.store.run(stateOf(from.keys))
  for (const state of [target, source]) {
    if (state === undefined || state === String(partitions)) continue
    throw new StoreError(
      'ONETRIP_INVALID_INPUT',
      state === FINISHED
        ? 'this migration is finished: use only the target store'
        : `this migration was started with ${state} partitions, not ${partitions}: use the same number everywhere`,
    )
  }
  return target
}

/**
 * Marks the migration as started on both sides, so that their janitors do not halve item counts meanwhile, and
 * records the target's number of partitions. Idempotent.
 *
 * @throws StoreError as `checkState`; `ONETRIP_INVALID_INPUT` also if `finishMigration` has started.
 */
export async function beginMigration(sides: MigrationSides): Promise<void> {
  if ((await checkState(sides)) === FINISHING) {
    throw new StoreError(
      'ONETRIP_INVALID_INPUT',
      'finishMigration of this migration has started: call it again until it succeeds',
    )
  }
  const { from, to } = sides
  await checkPartitions({ runner: to.store, keys: to.keys }, { readOnly: false })
  const partitions = to.keys.parts().length
  for (const { store, keys } of [from, to]) {
    await store.run(write([['HSETNX', keys.janitorTasks(), MIGRATION, partitions]]))
  }
}

/**
 * Resolves once both sides are ready. Writes nothing.
 *
 * @throws StoreError as `SessionStore.ready`; the message names the side.
 */
export async function readySides(
  { from, to }: { from: ReadySide; to: ReadySide },
  timeoutMs?: number,
): Promise<void> {
  const ready = async (name: string, { store }: ReadySide) => {
    try {
      await store.ready(timeoutMs, { readOnly: true })
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      const { code, message, cause } = error
      throw new StoreError(code, `the ${name} of the migration: ${message}`, { cause })
    }
  }
  await Promise.all([ready('source', from), ready('target', to)])
}

interface ReadySide {
  readonly store: Pick<SessionStore, 'ready'>
}
