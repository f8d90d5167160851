import calculateSlot from 'cluster-key-slot'
import type { Cluster, Redis } from 'ioredis'
import type { Keys } from '../keys.ts'
import { errorKind, isRead, notSent, type Outcome } from '../outcomes.ts'
import type { StrategyOptions } from '../strategy-options.ts'
import { type Command, keysOf, type Reply } from '../updates.ts'
import { isCluster } from './client.ts'

const REDIRECTIONS = new Set(['MOVED', 'ASK', 'TRYAGAIN'])

/** What a node answers to a command that it has not executed because another node should. */
const isRedirection = (outcome: Outcome | undefined): boolean =>
  outcome instanceof Error && REDIRECTIONS.has(errorKind(outcome))

const slotOf = (command: Command): number => calculateSlot(keysOf(command)[0] ?? '')

/**
 * One pipeline for each node that holds a key of the commands, sent together: one round trip.
 *
 * A command that a node refused because its slot has moved is sent again alone; what was executed, or
 * may have been, never is. Reads after such a command are sent again too, since they must not be
 * older than the write before them.
 *
 * These are pipelines of the nodes' own connections: that of `ioredis.Cluster` would send all of it to
 * where a slot is going when one command is to be asked there, and find nothing where keys have not
 * arrived (seen with 6.0.0 on 2026-11-21 as sessions that were there and were not found).
 */
export async function sendPerNode(
  cluster: Cluster,
  commands: readonly Command[],
): Promise<Outcome[]> {
  const outcomes = new Array<Outcome>(commands.length).fill(null)
  const byMaster = Map.groupBy(commands.keys(), (index) =>
    masterOf(cluster, commands[index] as Command),
  )
  await Promise.all([...byMaster].map(([master, indexes]) => pipelineTo(master, indexes)))

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

  async function pipelineTo(master: string | undefined, indexes: readonly number[]) {
    const connection = await connectionTo(cluster, master)
    if (!connection) {
      for (const index of indexes) outcomes[index] = noConnection(master)
      return
    }
    const pipeline = connection.pipeline()
    for (const index of indexes) {
      const [name, ...args] = commands[index] as Command
      pipeline.call(name, ...args)
    }
    const replies = await pipeline.exec()
    indexes.forEach((index, place) => {
      const [error, reply] = replies?.[place] ?? [new Error('no reply')]
      outcomes[index] = error ?? (reply as Reply)
    })
  }
}

const noConnection = (master = 'that has the slot') =>
  notSent(`there is no connection to the node ${master}`)

const masterOf = (cluster: Cluster, command: Command): string | undefined =>
  cluster.slots[slotOf(command)]?.[0]

/**
 * Sends one command to the node that holds its key, or to any when it has none. It is redirected, but
 * never sent again once it may have been executed.
 */
export async function sendToNode(cluster: Cluster, command: Command): Promise<Outcome> {
  const master = masterOf(cluster, command)
  if (keysOf(command).length > 0 && !(await connectionTo(cluster, master))) {
    return noConnection(master)
  }
  return await redirected(cluster, command)
}

const redirected = (cluster: Cluster, [name, ...args]: Command): Promise<Outcome> =>
  cluster.call(name, ...args).then(
    (reply) => reply as Reply,
    (error: Error) => error,
  )

/**
 * The connection to a node, if it is up; waits for one that is being opened.
 *
 * Without this ioredis would send the commands for a node that is down to another one, be told 16
 * times that they belong elsewhere, and report at last that their outcome is unknown.
 */
async function connectionTo(cluster: Cluster, node: string | undefined) {
  const connection = cluster
    .nodes()
    .find(({ options: { host, port } }) => `${host}:${port}` === node)
  if (!connection) {
    // It was lost. This makes ioredis connect again to the nodes that there are.
    cluster.refreshSlotsCache()
    return undefined
  }
  if (connection.status === 'ready') return connection
  if (connection.status === 'wait') connection.connect().catch(() => undefined) // told by 'end'
  if (!OPENING.has(connection.status)) return undefined
  const opening = openings.get(connection) ?? opened(connection)
  openings.set(connection, opening)
  return (await opening) ? connection : undefined
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

const inOneSlot = (keys: readonly string[]) =>
  new Set(keys.map((key) => calculateSlot(key))).size === 1

/**
 * Scripts name several keys of a session, or of an item.
 *
 * @throws TypeError when these are in several slots, and the client is a cluster.
 */
export function checkSlots(client: StrategyOptions['client'], keys: Keys): void {
  if (![client ?? []].flat().some(isCluster)) return
  const name = 'any'
  const ofSession = [keys.login(name), keys.recent(name), keys.viewed(name), keys.data(name)]
  const ofItem = [keys.popular(name), keys.once(name, name)]
  if (inOneSlot([...ofSession, keys.ended(name)]) && inOneSlot(ofItem)) return
  throw new TypeError(
    'on a cluster the keys of a session must be in one slot, and so must those of an item: use the option keys: partitionedKeys()',
  )
}
