import type { Command, Operation } from './command.ts'
import { publishWarning } from './diagnostics.ts'
import { StoreError } from './errors.ts'
import type { Keys } from './keys.ts'
import type { Runner } from './redis/runner.ts'

/** Field of `janitorTasks`: the number of partitions of the first start. */
const PARTITIONS = 'partitions'

interface Context {
  readonly runner: Pick<Runner, 'run'>
  readonly keys: Keys
}

/**
 * The recorded number; undefined before the first start. With `own`, first records that number unless one is recorded.
 * Keys: janitorTasks.
 */
const recordedNumber = (keys: Keys, own?: string): Operation<string | undefined> => {
  const record: Command[] =
    own === undefined ? [] : [['HSETNX', keys.janitorTasks(), PARTITIONS, own]]
  return {
    commands: [...record, ['HGET', keys.janitorTasks(), PARTITIONS]],
    readOnly: own === undefined,
    read: (replies) => (replies.at(-1) as string | null) ?? undefined,
  }
}

/**
 * Compares the number of partitions with the recorded one. A process with another number would look for sessions
 * and counts under the wrong keys. Takes one round trip, or two if it records the number.
 *
 * @throws StoreError `ONETRIP_INVALID_INPUT` if the numbers differ; as `Runner.run` if they cannot be compared.
 */
async function checkPartitions({ runner, keys }: Context): Promise<void> {
  const own = String(keys.parts().length)
  const recorded =
    (await runner.run(recordedNumber(keys))) ?? (await runner.run(recordedNumber(keys, own)))
  if (recorded === own) return
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
export async function checkPartitionsAtStart(context: Context): Promise<void> {
  try {
    await checkPartitions(context)
  } catch (error) {
    if (!(error instanceof StoreError) || error.code === 'ONETRIP_INVALID_INPUT') throw error
    publishWarning({
      code: 'ONETRIP_PARTITIONS',
      message: `cannot compare the number of partitions with that of the data in Redis: ${error.message}. Check that every process uses ${context.keys.parts().length}`,
    })
  }
}
