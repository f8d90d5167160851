import { viewOf } from '../cluster/view.ts'
import type { ClusterNode } from '../cluster.ts'
import { until } from '../until.ts'

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
  // Otherwise the new owner may choose an epoch that is no higher than the old owner's, which then claims the slot back.
  await until(() => agreeOnEpochs(nodes), { everyMs: 5 })
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

/** Whether the primaries know each other's present epochs. */
async function agreeOnEpochs(nodes: readonly ClusterNode[]): Promise<boolean> {
  const primaries = (await viewsOf(nodes)).filter(({ self }) => self.primary === null)
  return primaries.every((view) =>
    primaries.every(({ self }) => view.nodes.get(self.id)?.epoch === self.epoch),
  )
}

/** The nodes that are primaries. */
export async function primariesOf(nodes: readonly ClusterNode[]): Promise<ClusterNode[]> {
  const views = await viewsOf(nodes)
  return nodes.filter((_, index) => views[index]?.self.primary === null)
}

const viewsOf = (nodes: readonly ClusterNode[]) =>
  Promise.all(nodes.map(({ admin }) => viewOf(admin)))
