import { StoreError } from '../errors.ts'
import type { Keys } from '../keys.ts'
import { checkPartitions } from '../partitions.ts'
import { FINISHED, MIGRATION } from '../retention/janitor-lock.ts'
import type { SessionStore } from '../store-types.ts'
import type { Command, Update } from '../updates.ts'

/** One side of a migration. */
export interface MigrationSide {
  readonly store: Pick<SessionStore, 'run'>
  /** The layout of its keys, with the prefix if it has one (`prefixedKeys`). */
  readonly keys: Keys
}

/** The two sides of a migration. */
export interface MigrationSides {
  /** A single Redis: its keys may be in several slots. */
  readonly from: MigrationSide
  readonly to: MigrationSide
}

/** A state; before it, the number of the target's partitions, and after it `FINISHED`. */
export const FINISHING = 'finishing'

/** Field of `janitorTasks` of the source: a bridge with the target as home has begun to serve. */
export const OPENED = 'migration:opened'

const write = (commands: readonly Command[]): Update<void> => ({
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

/** The state of one side; undefined before a migration. Keys: janitorTasks. */
const stateOf = (keys: Keys): Update<string | undefined> => ({
  commands: [['HGET', keys.janitorTasks(), MIGRATION]],
  readOnly: true,
  read: ([reply]) => (typeof reply === 'string' ? reply : undefined),
})

/**
 * The state of the target; undefined before a migration.
 *
 * @throws StoreError `ONETRIP_INVALID_INPUT` when the migration is finished, or began with another number of
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
        ? 'this migration is finished: serve from the target alone'
        : `this migration began with ${state} partitions, not ${partitions}: use the same number everywhere`,
    )
  }
  return target
}

/**
 * Marks both sides, so that their janitors do not halve item counts meanwhile, and records the number of the
 * target's partitions. Repeating it changes nothing.
 *
 * @throws StoreError as `checkState`; `ONETRIP_INVALID_INPUT` also when the migration is being finished.
 */
export async function beginMigration(sides: MigrationSides): Promise<void> {
  if ((await checkState(sides)) === FINISHING) {
    throw new StoreError(
      'ONETRIP_INVALID_INPUT',
      'this migration is being finished: finish it first',
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
 * Resolves once both sides can be used. Writes nothing.
 *
 * @throws StoreError as `SessionStore.ready`, naming the side.
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
