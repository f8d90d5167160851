import type { Redis } from 'ioredis'
import type { ClusterNode } from '../cluster.ts'
import { type View, viewOf } from './view.ts'

export interface SlotMove {
  slot: number
  to: ClusterNode
  /** Called and awaited before the first key moves and after each key. */
  onKey?: () => Promise<void>
}

/**
 * Moves a slot to another node, as `redis-cli --cluster reshard` does, but key by key, in descending order of
 * names. Does nothing if the node already has the slot.
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
  /** Ranges of slots (first, last). */
  ranges: View['self']['slots']
  /** The node that has the slots. */
  from: ClusterNode
  to: ClusterNode
}

/**
 * Moves many slots to another node: slots with keys like `moveSlot`, then all empty slots at once. No key may be
 * created in an empty slot meanwhile.
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
  // With an older epoch than that of the former owner, the node would lose the slots again.
  await to.admin.cluster('BUMPEPOCH')
  const id = await to.admin.cluster('MYID')
  const empty = slots.filter((_, index) => counts[index] === 0)
  const assign = empty.map((slot) => ['CLUSTER', 'SETSLOT', slot, 'NODE', id])
  for (const { admin } of [to, from, ...(await primariesOf(nodes))]) await replies(admin, assign)
}

/** @throws ReplyError: the first error reply of Redis. */
async function replies(admin: Redis, commands: readonly (string | number)[][]): Promise<unknown[]> {
  const pipeline = admin.pipeline()
  for (const [name = '', ...args] of commands) pipeline.call(String(name), ...args)
  const results = (await pipeline.exec()) ?? []
  return results.map(([error, reply]) => {
    if (error) throw error
    return reply
  })
}
