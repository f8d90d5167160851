import { publishWarning } from './diagnostics.ts'
import { StoreError } from './errors.ts'
import type { Keys } from './keys.ts'
import type { Command, Operation } from './operation.ts'
import type { Runner } from './sending/runner.ts'

/** Field of `janitorTasks`: the number of partitions of the first start. */
const PARTITIONS = 'partitions'

interface Context {
  readonly runner: Pick<Runner, 'run'>
  readonly keys: Keys
}

/** Reads the recorded number; undefined before the first start. Keys: janitorTasks. */
const readNumber = (keys: Keys): Operation<string | undefined> => ({
  commands: [hget(keys)],
  readOnly: true,
  read: ([reply]) => (typeof reply === 'string' ? reply : undefined),
})

/** Records the number unless one is recorded. Reads the recorded number. Keys: janitorTasks. */
const recordNumber = (keys: Keys, partitions: string): Operation<string> => ({
  commands: [['HSETNX', keys.janitorTasks(), PARTITIONS, partitions], hget(keys)],
  readOnly: false,
  read: ([, reply]) => String(reply),
})

const hget = (keys: Keys): Command => ['HGET', keys.janitorTasks(), PARTITIONS]

/**
 * Compares the number of partitions with the recorded one. A process with another number would look for sessions
 * and counts under the wrong keys. Takes one round trip, or two if it records the number.
 *
 * @param options `readOnly`: does not record the number.
 * @throws StoreError `ONETRIP_INVALID_INPUT` if the numbers differ; as `Runner.run` if they cannot be compared.
 */
export async function checkPartitions(
  { runner, keys }: Context,
  { readOnly }: { readOnly: boolean },
): Promise<void> {
  const own = String(keys.parts().length)
  let recorded = await runner.run(readNumber(keys))
  if (recorded === undefined && !readOnly) recorded = await runner.run(recordNumber(keys, own))
  if (recorded === undefined || recorded === own) return
  throw new StoreError(
    'ONETRIP_INVALID_INPUT',
    `this process is set to ${own} partitions, but the first start recorded ${recorded} (field ${PARTITIONS} of ${keys.janitorTasks()}): set ${recorded} in every process, as partitionedKeys(${recorded}) or REDIS_PARTITIONS=${recorded}; if the first start had the wrong number, stop all processes with that number, run HDEL ${keys.janitorTasks()} ${PARTITIONS}, and start with the right number`,
  )
}

/**
 * Like `checkPartitions`, but only warns if the numbers cannot be compared: a process must be able to start while
 * a node of the cluster is down.
 *
 * @throws StoreError `ONETRIP_INVALID_INPUT` if the numbers differ.
 */
export async function checkPartitionsAtStart(
  context: Context,
  options: { readOnly: boolean },
): Promise<void> {
  try {
    await checkPartitions(context, options)
  } catch (error) {
    if (!(error instanceof StoreError) || error.code === 'ONETRIP_INVALID_INPUT') throw error
    publishWarning({
      code: 'ONETRIP_PARTITIONS',
      message: `cannot compare the number of partitions with that of the data in Redis: ${error.message}. Check that every process uses ${context.keys.parts().length}`,
    })
  }
}
