import type { Cluster, Redis } from 'ioredis'
import type { Command } from '../command.ts'
import type { Waiting } from '../redis/batching.ts'
import { isWritable } from '../redis/client-watch.ts'
import type { Send } from '../redis/frame.ts'
import { isLost, isNotSent, notSent, type Outcome, withOmitted } from '../redis/outcomes.ts'
import { isFailed, nodeName } from './health.ts'
import { placesToResend, redirected } from './redirections.ts'
import { SLOTS, slotOf } from './slots.ts'

/** Sends commands to one node, without redirections. */
export type SendToNode = (
  node: string | undefined,
  commands: readonly Command[],
) => Promise<readonly Outcome[]>

/**
 * Splits an operation into the parts for the nodes that hold its keys. Send all parts at the same time: one round trip.
 *
 * If a node refuses a command because its slot has moved, only that command is sent again, and some reads after
 * it (`placesToResend`). A write that was or may have been executed is never sent again.
 *
 * The nodes' own connections send. After one ASK, a pipeline of `ioredis.Cluster` goes to the importing node as a
 * whole and misses keys that have not arrived there (with ioredis 6.0.0 on 2026-11-21, existing sessions were not
 * found).
 */
export function partsOf(
  cluster: Cluster,
  { list, resolve, reject }: Waiting,
): Map<string | undefined, Waiting> {
  const { commands } = list
  const placesByNode = new Map<string | undefined, number[]>()
  commands.forEach((command, place) => {
    const node = primaryOf(cluster, slotOf(command))
    const places = placesByNode.get(node)
    if (places) places.push(place)
    else placesByNode.set(node, [place])
  })
  const outcomes = new Array<Outcome>(commands.length)
  const parts = new Map<string | undefined, Waiting>()
  let missing = placesByNode.size
  if (missing === 0) resolve(outcomes)
  for (const [node, places] of placesByNode) {
    const own = places.map((place) => commands[place] as Command)
    const finish = (replies: readonly Outcome[]) => {
      places.forEach((place, index) => {
        outcomes[place] = replies[index] ?? null
      })
      if (--missing === 0) resolve(outcomes)
    }
    parts.set(node, {
      list: { ...list, commands: own },
      reject,
      resolve(replies) {
        const again = placesToResend(own, replies)
        if (again.length === 0) finish(replies)
        else resend(cluster, own, { replies, again }).then(finish, reject)
      },
    })
  }
  return parts
}

/** Returns the replies with those of the commands at the places `again`, which ioredis redirects. */
async function resend(
  cluster: Cluster,
  commands: readonly Command[],
  { replies, again }: { replies: readonly Outcome[]; again: number[][] },
): Promise<Outcome[]> {
  const all = [...replies]
  await Promise.all(
    again.map(async (places) => {
      for (const place of places) all[place] = await redirected(cluster, commands[place] as Command)
    }),
  )
  return all
}

/** Sends the commands to one node with `send`, without redirections. */
export async function sendToPrimary(
  cluster: Cluster,
  send: Send,
  primary: string | undefined,
  commands: readonly Command[],
): Promise<readonly Outcome[]> {
  const connection = await connectionTo(cluster, primary)
  if (!connection) return withOmitted([noConnection(primary)], commands.length)
  const outcomes = await send(connection, commands).catch((error: Error) => [error])
  return withOmitted(outcomes, commands.length).map((outcome) =>
    isLost(outcome) && !isNotSent(outcome) ? lostReply(outcome, primary) : outcome,
  )
}

/** The error itself is not ours: an application that shares the client gets the same one for its own commands. */
const lostReply = (cause: Error, node: string | undefined): Error =>
  Object.assign(new Error(cause.message, { cause }), { node })

const noConnection = (primary = 'that has the slot') =>
  notSent(`there is no connection to the node ${primary}`)

/**
 * Waits until the connections to these nodes are up; undefined if they are up now.
 *
 * @throws StoreError `ONETRIP_NOT_SENT` (as a rejection) if a node cannot be reached.
 */
export function connectedTo(
  cluster: Cluster,
  nodes: readonly (string | undefined)[],
): Promise<void> | undefined {
  const missing = nodes.filter((node) => {
    const connection = connectionOf(cluster, node)
    return !connection || !isWritable(connection)
  })
  if (missing.length === 0) return undefined
  const connect = async (node: string | undefined) => {
    if (!(await connectionTo(cluster, node))) throw noConnection(node)
  }
  return Promise.all(missing.map(connect)).then(() => undefined)
}

const primaryOf = (cluster: Cluster, slot: number): string | undefined => cluster.slots[slot]?.[0]

/** The nodes that have the keys of the commands, as `host:port`; undefined stands for slots without a node. */
export function nodesOf(cluster: Cluster, commands: readonly Command[]): (string | undefined)[] {
  const nodes: (string | undefined)[] = []
  for (const command of commands) {
    const node = primaryOf(cluster, slotOf(command))
    if (!nodes.includes(node)) nodes.push(node)
  }
  return nodes
}

/** The nodes that have slots, as `host:port`; undefined stands for slots without a node. */
export const primariesOf = (cluster: Cluster): (string | undefined)[] => [
  ...new Set(Array.from({ length: SLOTS }, (_, slot) => primaryOf(cluster, slot))),
]

/** For each primary, whether the connection to it is up. */
export function primaryStates(cluster: Cluster): boolean[] {
  if (cluster.status !== 'ready') return [false]
  const ready = cluster.nodes('master').filter(isWritable)
  const up = new Set(ready.map(nodeName).filter((node) => !isFailed(cluster, node)))
  return primariesOf(cluster).map((primary) => primary !== undefined && up.has(primary))
}

/**
 * The connection to a node, if it is up. Waits for a connection that is being opened.
 *
 * Without this, ioredis would send the commands for a node that is down to another node and follow 16
 * redirections.
 */
async function connectionTo(cluster: Cluster, node: string | undefined) {
  const connection = connectionOf(cluster, node)
  if (!connection) {
    refreshSlots(cluster)
    return undefined
  }
  if (isWritable(connection)) return connection
  if (connection.status === 'wait') connection.connect().catch(() => undefined) // 'end' follows
  if (!OPENING.has(connection.status)) return undefined
  const opening = openings.get(connection) ?? opened(connection)
  openings.set(connection, opening)
  return (await opening) ? connection : undefined
}

/** The connection to a node, up or not; undefined if the node has left the cluster or failed. */
const connectionOf = (cluster: Cluster, node: string | undefined): Redis | undefined =>
  isFailed(cluster, node) ? undefined : cluster.nodes().find((redis) => nodeName(redis) === node)

/** Limits the refreshes, each of which opens a connection: not one for every command that finds no node. */
const REFRESH_INTERVAL_MS = 100
const refreshedAt = new WeakMap<Cluster, number>()

/** Makes ioredis reconnect to the current nodes after a lost connection. */
export function refreshSlots(cluster: Cluster): void {
  const now = performance.now()
  if (now - (refreshedAt.get(cluster) ?? Number.NEGATIVE_INFINITY) < REFRESH_INTERVAL_MS) return
  refreshedAt.set(cluster, now)
  cluster.refreshSlotsCache()
}

const OPENING = new Set(['connecting', 'connect'])
/** Shared by all commands that wait for the same connection, so that it has few listeners. */
const openings = new WeakMap<Redis, Promise<boolean>>()

/** Whether the connection is ready within its timeout. A stopped process accepts connections, but never replies. */
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
