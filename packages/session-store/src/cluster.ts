import calculateSlot from 'cluster-key-slot'
import type { Cluster } from 'ioredis'
import { isRead, type Outcome } from './outcomes.ts'
import { type Command, keysOf, type Reply } from './updates.ts'

/**
 * What a node answers to a command that it has not executed because another node should, or what
 * ioredis says when the slots of a pipeline went to different nodes before it was sent.
 */
const isRedirection = (outcome: Outcome | undefined): boolean =>
  outcome instanceof Error &&
  /^(MOVED|ASK|TRYAGAIN|All the keys in the pipeline should)\b/.test(outcome.message)

const slotOf = (command: Command): number => calculateSlot(keysOf(command)[0] ?? '')

/**
 * One pipeline for each node that holds a key of the commands, sent together: one round trip.
 *
 * A command that a node refused because its slot has moved is sent again alone; what was executed, or
 * may have been, never is. Reads after such a command are sent again too, since they must not be
 * older than the write before them.
 */
export async function sendPerNode(
  cluster: Cluster,
  commands: readonly Command[],
): Promise<Outcome[]> {
  const outcomes = new Array<Outcome>(commands.length).fill(null)
  const byNode = new Map<string | number, number[]>()
  commands.forEach((command, index) => {
    const slot = slotOf(command)
    const node = cluster.slots[slot]?.join() ?? slot
    const indexes = byNode.get(node)
    if (indexes) indexes.push(index)
    else byNode.set(node, [index])
  })
  await Promise.all([...byNode.values()].map((indexes) => pipelineTo(indexes)))

  const refused = outcomes.findIndex(isRedirection)
  if (refused >= 0) {
    for (let index = refused; index < commands.length; index++) {
      const command = commands[index]
      if (command && (isRedirection(outcomes[index]) || isRead(command))) {
        const [name, ...args] = command
        outcomes[index] = await cluster.call(name, ...args).then(
          (reply) => reply as Reply,
          (error: Error) => error,
        )
      }
    }
  }
  return outcomes

  async function pipelineTo(indexes: readonly number[]): Promise<void> {
    const pipeline = cluster.pipeline()
    for (const index of indexes) {
      const [name, ...args] = commands[index] as Command
      pipeline.call(name, ...args)
    }
    const replies = await pipeline
      .exec()
      .catch((error: Error) => indexes.map((): [Error, unknown] => [error, null]))
    indexes.forEach((index, place) => {
      const [error, reply] = replies?.[place] ?? [null, null]
      outcomes[index] = error ?? (reply as Reply)
    })
  }
}
