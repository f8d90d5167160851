import type { Redis } from 'ioredis'
import type { ClusterNode } from '../cluster.ts'
import { type View, viewOf } from './view.ts'

export interface SlotMove {
  slot: number
  to: ClusterNode
  /** Called, and waited for, before the first key moves and after each. */
  onKey?: () => Promise<void>
}

/**
 * Gives a slot with all its keys to another node, as `redis-cli --cluster reshard` would, but one by one, the
 * last by name first. Does nothing if that node has it.
 */
export async function moveSlot(
  nodes: readonly ClusterNode[],
  { slot, to, onKey }: SlotMove,
): Promise<void> {
  const ids = await Promise.all(nodes.map(({ admin }) => admin.cluster('MYID')))
  const ranges = await to.admin.cluster('SLOTS')
  const range = ranges.find(([first, last]) => slot >= first && slot <= last)
  const from = nodes[ids.indexOf(range?.[2]?.[2] ?? '')] as ClusterNode
  if (from === to) return
  const idOf = (node: ClusterNode) => ids[nodes.indexOf(node)] ?? ''
  await to.admin.cluster('SETSLOT', slot, 'IMPORTING', idOf(from))
  await from.admin.cluster('SETSLOT', slot, 'MIGRATING', idOf(to))
  for (;;) {
    await onKey?.()
    const last = (await from.admin.cluster('GETKEYSINSLOT', slot, 1_000)).sort().at(-1)
    if (last === undefined) break
    await from.admin.migrate('127.0.0.1', to.port, last, 0, 5_000)
  }
  for (const { admin } of [to, from, ...(await primariesOf(nodes))]) {
    await admin.cluster('SETSLOT', slot, 'NODE', idOf(to))
  }
}

async function primariesOf(nodes: readonly ClusterNode[]): Promise<ClusterNode[]> {
  const views = await Promise.all(nodes.map(({ admin }) => viewOf(admin)))
  return nodes.filter((_, index) => views[index]?.self.primary === null)
}

export interface SlotsMove {
  /** The first and the last slot of each range. */
  ranges: View['self']['slots']
  /** The node that has them. */
  from: ClusterNode
  to: ClusterNode
}

/**
 * Gives many slots to another node: those with keys as `moveSlot` does, then all others at once, in which no key
 * may be created meanwhile.
 */
export async function moveSlots(
  nodes: readonly ClusterNode[],
  { ranges, from, to }: SlotsMove,
): Promise<void> {
  const slots = ranges.flatMap(([first, last]) =>
    Array.from({ length: last - first + 1 }, (_, index) => first + index),
  )
  const counts = await replies(
    from.admin,
    slots.map((slot) => ['CLUSTER', 'COUNTKEYSINSLOT', slot]),
  )
  for (const [index, slot] of slots.entries()) {
    if (counts[index] !== 0) await moveSlot(nodes, { slot, to })
  }
  // With an older epoch than the former owner's, the node would lose them to it again.
  await to.admin.cluster('BUMPEPOCH')
  const id = await to.admin.cluster('MYID')
  const empty = slots.filter((_, index) => counts[index] === 0)
  const assign = empty.map((slot) => ['CLUSTER', 'SETSLOT', slot, 'NODE', id])
  for (const { admin } of [to, from, ...(await primariesOf(nodes))]) await replies(admin, assign)
}

/** @throws the first error that Redis replied with. */
async function replies(admin: Redis, commands: readonly (string | number)[][]): Promise<unknown[]> {
  const pipeline = admin.pipeline()
  for (const [name = '', ...args] of commands) pipeline.call(String(name), ...args)
  const results = (await pipeline.exec()) ?? []
  return results.map(([error, reply]) => {
    if (error) throw error
    return reply
  })
}
