import type { Socket } from 'node:net'
import calculateSlot from 'cluster-key-slot'
import type { Cluster, Redis } from 'ioredis'
import type { Keys } from '../keys.ts'
import { errorKind, isRead, isRefusal, notSent, type OnArrival, type Outcome } from '../outcomes.ts'
import type { StrategyOptions } from '../strategy-options.ts'
import { type Command, keysOf, type Reply } from '../updates.ts'
import { isCluster } from './client.ts'

const REDIRECTIONS = new Set(['MOVED', 'ASK', 'TRYAGAIN'])

/** What a node answers to a command that it has not executed because another node should. */
export const isRedirection = (outcome: Outcome | undefined): boolean =>
  outcome instanceof Error && REDIRECTIONS.has(errorKind(outcome))

const slotOf = (command: Command): number => calculateSlot(keysOf(command)[0] ?? '')

/**
 * One pipeline for each node that holds a key of the commands, sent together: one round trip.
 *
 * A command that a node refused because its slot has moved is sent again alone; what was executed, or
 * may have been, never is. Reads after it in the same pipeline are sent again too, since they must not be
 * older than the write before them.
 *
 * These are pipelines of the nodes' own connections: that of `ioredis.Cluster` would send all of it to
 * where a slot is going when one command is to be asked there, and find nothing where keys have not
 * arrived (seen with 6.0.0 on 2026-11-21 as sessions that were there and were not found).
 */
export async function sendPerNode(
  cluster: Cluster,
  commands: readonly Command[],
  onArrival?: OnArrival,
): Promise<Outcome[]> {
  const outcomes = new Array<Outcome | undefined>(commands.length).fill(undefined)
  const byMaster = Map.groupBy(commands.keys(), (index) =>
    masterOf(cluster, slotOf(commands[index] as Command)),
  )
  let waiting = byMaster.size
  await Promise.all(
    [...byMaster].map(async ([master, indexes]) => {
      const own = indexes.map((index) => commands[index] as Command)
      const replies = await sendToMaster(cluster, master, own)
      await redirectRefused(cluster, own, replies)
      indexes.forEach((index, place) => {
        outcomes[index] = replies[place] ?? null
      })
      if (--waiting > 0) onArrival?.(outcomes)
    }),
  )
  return outcomes as Outcome[]
}

/** Sends those again that the node has refused because their slot has moved, and replaces their outcomes. */
async function redirectRefused(
  cluster: Cluster,
  commands: readonly Command[],
  outcomes: Outcome[],
): Promise<void> {
  const refused = outcomes.findIndex(isRedirection)
  if (refused < 0) return
  for (let index = refused; index < commands.length; index++) {
    const command = commands[index]
    if (command && (isRedirection(outcomes[index]) || isRead(command))) {
      outcomes[index] = await redirected(cluster, command)
    }
  }
}

/** One pipeline to one node, as it is: nothing is redirected. */
export async function sendToMaster(
  cluster: Cluster,
  master: string | undefined,
  commands: readonly Command[],
): Promise<Outcome[]> {
  const connection = await connectionTo(cluster, master)
  if (!connection) return commands.map(() => noConnection(master))
  const pipeline = connection.pipeline()
  for (const [name, ...args] of commands) pipeline.call(name, ...args)
  const replies = await pipeline.exec()
  return commands.map((_, place) => {
    const [error, reply] = replies?.[place] ?? [new Error('no reply')]
    if (!error) return reply as Reply
    return isRefusal(error) ? error : Object.assign(error as Error, { node: master })
  })
}

const noConnection = (master = 'that has the slot') =>
  notSent(`there is no connection to the node ${master}`)

const masterOf = (cluster: Cluster, slot: number): string | undefined => cluster.slots[slot]?.[0]

/** The nodes that have the keys of the commands, as `host:port`; `none` for slots that no node has. */
export const nodesOf = (cluster: Cluster, commands: readonly Command[]): string[] => [
  ...new Set(commands.map((command) => masterOf(cluster, slotOf(command)) ?? 'none')),
]

const SLOTS = 16_384

/** The nodes that have slots, as `host:port`; undefined for slots that no node has. */
export const mastersOf = (cluster: Cluster): (string | undefined)[] => [
  ...new Set(Array.from({ length: SLOTS }, (_, slot) => masterOf(cluster, slot))),
]

/** Opens the connections to all of them. Resolves once each is up or has failed. */
export async function openMasters(cluster: Cluster): Promise<void> {
  await Promise.all(mastersOf(cluster).map((master) => connectionTo(cluster, master)))
}

/** Whether the connection to each of them is up. */
export function masterStates(cluster: Cluster): boolean[] {
  if (cluster.status !== 'ready') return [false]
  const ready = cluster.nodes('master').filter(({ status }) => status === 'ready')
  const up = new Set(ready.map(nodeName))
  return mastersOf(cluster).map((master) => master !== undefined && up.has(master))
}

const nodeName = ({ options: { host, port } }: Redis): string => `${host}:${port}`

/** Where one connection leads: to a socket, to a node, or to the master that sentinels named. */
export function serverName(redis: Redis): string {
  const { path, sentinels } = redis.options
  if (!sentinels) return path ?? nodeName(redis)
  const { remoteAddress, remotePort } = redis.stream as Partial<Socket>
  return `${remoteAddress}:${remotePort}`
}

/**
 * Sends one command to the node that holds its key, or to any when it has none. It is redirected, but
 * never sent again once it may have been executed.
 */
export async function sendToNode(cluster: Cluster, command: Command): Promise<Outcome> {
  const master = masterOf(cluster, slotOf(command))
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
  const connection = cluster.nodes().find((redis) => nodeName(redis) === node)
  if (!connection) {
    refreshSlots(cluster)
    return undefined
  }
  if (connection.status === 'ready') return connection
  if (connection.status === 'wait') connection.connect().catch(() => undefined) // told by 'end'
  if (!OPENING.has(connection.status)) return undefined
  const opening = openings.get(connection) ?? opened(connection)
  openings.set(connection, opening)
  return (await opening) ? connection : undefined
}

/** Each asks a node on a connection of its own: not for every command that finds no node. */
const REFRESH_EVERY_MS = 100
const refreshedAt = new WeakMap<Cluster, number>()

/** A connection was lost. This makes ioredis connect again to the nodes that there are. */
function refreshSlots(cluster: Cluster): void {
  const now = performance.now()
  if (now - (refreshedAt.get(cluster) ?? Number.NEGATIVE_INFINITY) < REFRESH_EVERY_MS) return
  refreshedAt.set(cluster, now)
  cluster.refreshSlotsCache()
}

const OPENING = new Set(['connecting', 'connect'])
/** All that wait for a connection share its listeners. It stays until the connection is up, or ends. */
const openings = new WeakMap<Redis, Promise<boolean>>()

/** Whether the connection is up soon: a node that is stopped accepts one, and does not answer on it. */
function opened(connection: Redis): Promise<boolean> {
  return new Promise((resolve) => {
    const late = setTimeout(resolve, connection.options.connectTimeout, false)
    const ready = () => settle(true)
    const end = () => settle(false)
    connection.once('ready', ready).once('end', end)
    function settle(isUp: boolean): void {
      clearTimeout(late)
      connection.off('ready', ready).off('end', end)
      openings.delete(connection)
      resolve(isUp)
    }
  })
}

const inOneSlot = (keys: readonly string[]) =>
  new Set(keys.map((key) => calculateSlot(key))).size === 1

/** Whether the keys are spread over the nodes of a cluster. */
export const isClustered = ({ cluster, client }: StrategyOptions): boolean =>
  cluster !== undefined || [client ?? []].flat().some(isCluster)

/**
 * Scripts name several keys of a session, or of an item.
 *
 * @throws TypeError when these are in several slots, and there is a cluster.
 */
export function checkSlots(options: StrategyOptions, keys: Keys): void {
  if (!isClustered(options)) return
  const name = 'any'
  const ofSession = [keys.login(name), keys.recent(name), keys.viewed(name), keys.data(name)]
  const ofItem = [keys.popular(name), keys.once(name, name)]
  if (inOneSlot([...ofSession, keys.ended(name)]) && inOneSlot(ofItem)) return
  throw new TypeError(
    'on a cluster the keys of a session must be in one slot, and so must those of an item: use the option keys: partitionedKeys()',
  )
}
