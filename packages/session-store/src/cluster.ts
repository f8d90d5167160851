import calculateSlot from 'cluster-key-slot'
import type { Cluster, Redis } from 'ioredis'
import { isRead, notSent, type Outcome } from './outcomes.ts'
import { type Command, keysOf, type Reply } from './updates.ts'

/**
 * What a node answers to a command that it has not executed because another node should, or what
 * ioredis says when the slots of a pipeline went to different nodes before it was sent.
 */
const isRedirection = (outcome: Outcome | undefined): boolean =>
  outcome instanceof Error &&
  /^(MOVED|ASK|TRYAGAIN|All keys in the pipeline should)\b/.test(outcome.message)

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
  // ioredis sends a pipeline only to slots that the same master and replicas serve.
  const byNodes = Map.groupBy(commands.keys(), (index) => {
    const slot = slotOf(commands[index] as Command)
    return cluster.slots[slot]?.join(' ') ?? String(slot)
  })
  await Promise.all([...byNodes].map(([nodes, indexes]) => pipelineTo(nodes, indexes)))

  const refused = outcomes.findIndex(isRedirection)
  if (refused >= 0) {
    for (let index = refused; index < commands.length; index++) {
      const command = commands[index]
      if (command && (isRedirection(outcomes[index]) || isRead(command))) {
        outcomes[index] = await redirected(cluster, command)
      }
    }
  }
  return outcomes

  async function pipelineTo(nodes: string, indexes: readonly number[]): Promise<void> {
    const [master = ''] = nodes.split(' ', 1)
    if (!(await isUp(cluster, master))) {
      const reason = notSent(`there is no connection to the node ${master}`)
      for (const index of indexes) outcomes[index] = reason
      return
    }
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

/**
 * Sends one command to the node that holds its key, or to any when it has none. It is redirected, but
 * never sent again once it may have been executed.
 */
export async function sendToNode(cluster: Cluster, command: Command): Promise<Outcome> {
  const [master] = cluster.slots[slotOf(command)] ?? []
  if (keysOf(command).length > 0 && master && !(await isUp(cluster, master))) {
    return notSent(`there is no connection to the node ${master}`)
  }
  return await redirected(cluster, command)
}

const redirected = (cluster: Cluster, [name, ...args]: Command): Promise<Outcome> =>
  cluster.call(name, ...args).then(
    (reply) => reply as Reply,
    (error: Error) => error,
  )

/**
 * Whether there is a connection to the node; waits for one that is being opened.
 *
 * Without this ioredis would send the commands for a node that is down to another one, be told 16
 * times that they belong elsewhere, and report at last that their outcome is unknown.
 */
async function isUp(cluster: Cluster, node: string): Promise<boolean> {
  const connection = cluster
    .nodes()
    .find(({ options: { host, port } }) => `${host}:${port}` === node)
  if (!connection) {
    // It was lost. This makes ioredis connect again to the nodes that there are.
    cluster.refreshSlotsCache()
    return false
  }
  if (connection.status === 'ready') return true
  if (connection.status === 'wait') connection.connect().catch(() => undefined) // told by 'end'
  if (!OPENING.has(connection.status)) return false
  const opening = openings.get(connection) ?? opened(connection)
  openings.set(connection, opening)
  return await opening
}

const OPENING = new Set(['connecting', 'connect'])
/** All that wait for a connection share its listeners. */
const openings = new WeakMap<Redis, Promise<boolean>>()

function opened(connection: Redis): Promise<boolean> {
  return new Promise((resolve) => {
    const ready = () => settle(true)
    const end = () => settle(false)
    connection.once('ready', ready).once('end', end)
    function settle(isUp: boolean): void {
      connection.off('ready', ready).off('end', end)
      openings.delete(connection)
      resolve(isUp)
    }
  })
}
