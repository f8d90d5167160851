import type { Redis } from 'ioredis'
import type { View } from '../cluster/view.ts'
import type { ClusterNode } from '../cluster.ts'
import { moveSlot, primariesOf } from './move-slot.ts'

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
