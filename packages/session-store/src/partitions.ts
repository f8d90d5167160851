import { publishWarning } from './diagnostics.ts'
import { StoreError } from './errors.ts'
import type { Keys } from './keys.ts'
import type { Runner } from './runner.ts'
import type { Command, Update } from './updates.ts'

/** Field of `janitorTasks`: how many partitions the data of this Redis has. */
const PARTITIONS = 'partitions'

interface Context {
  readonly runner: Pick<Runner, 'run'>
  readonly keys: Keys
}

/** How many partitions were recorded; undefined before the first start. Keys: janitorTasks. */
const recorded = (keys: Keys): Update<string | undefined> => ({
  commands: [readOf(keys)],
  readOnly: true,
  read: ([reply]) => (typeof reply === 'string' ? reply : undefined),
})

/** Records the number unless another process was first. Reads the number that counts. Keys: janitorTasks. */
const record = (keys: Keys, partitions: string): Update<string> => ({
  commands: [['HSETNX', keys.janitorTasks(), PARTITIONS, partitions], readOf(keys)],
  readOnly: false,
  read: ([, reply]) => String(reply),
})

const readOf = (keys: Keys): Command => ['HGET', keys.janitorTasks(), PARTITIONS]

/**
 * Compares the number of partitions with that of the first process that used this Redis: with another number
 * it would look for sessions and counts where they are not. One round trip, and two when it records the number.
 *
 * @param options `readOnly`: if no number is recorded, records none.
 * @throws StoreError `ONETRIP_INVALID_INPUT` when the numbers differ; as `Runner.run` when they cannot be compared.
 */
export async function checkPartitions(
  { runner, keys }: Context,
  { readOnly }: { readOnly: boolean },
): Promise<void> {
  const own = String(keys.parts().length)
  let partitions = await runner.run(recorded(keys))
  if (partitions === undefined && !readOnly) partitions = await runner.run(record(keys, own))
  if (partitions === undefined || partitions === own) return
  throw new StoreError(
    'ONETRIP_INVALID_INPUT',
    `this process is set to ${own} partitions, but the data in Redis has ${partitions} (field ${PARTITIONS} of ${keys.janitorTasks()}): use the same number in every process, as partitionedKeys(${partitions}) or REDIS_PARTITIONS=${partitions}`,
  )
}

/**
 * The same at a start. Only warns where the numbers cannot be compared: a process must be able to start while
 * a node of the cluster is down.
 *
 * @throws StoreError `ONETRIP_INVALID_INPUT` when the numbers differ.
 */
export async function checkPartitionsAtStart(
  context: Context,
  options: { readOnly: boolean },
): Promise<void> {
  try {
    await checkPartitions(context, options)
  } catch (error) {
    if (!(error instanceof StoreError) || error.statusCode !== 503) throw error
    publishWarning({
      code: 'ONETRIP_PARTITIONS',
      message: `the number of partitions was not compared with that of other processes: ${error.message}. Check that every process has ${context.keys.parts().length}`,
    })
  }
}
