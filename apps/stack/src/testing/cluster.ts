import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { viewOf } from '../cluster/view.ts'
import { type ClusterNode, type LocalCluster, startCluster } from '../cluster.ts'

export type TestNode = ClusterNode

export interface TestCluster extends LocalCluster {
  /**
   * Gives a slot with all its keys to another node, as `redis-cli --cluster reshard` would, but one
   * by one, the last by name first.
   *
   * @param onKey Is called, and waited for, before the first key moves and after each.
   */
  moveSlot(slot: number, to: ClusterNode, onKey?: () => Promise<void>): Promise<void>
}

export interface TestClusterOptions {
  /** Primaries. Default 3. */
  nodes?: number
  /** Of each primary; their nodes come after all primaries. Default 0. */
  replicas?: number
  config?: Record<string, string>
}

/** A Redis Cluster for tests, on loopback, without users. `stop()` removes its data. */
export async function testCluster(options: TestClusterOptions = {}): Promise<TestCluster> {
  const { nodes: primaries = 3, replicas = 0, config } = options
  const directory = await mkdtemp(join(tmpdir(), 'onetrip-cluster-'))
  const { nodes, stop } = await startCluster({
    ...{ primaries, replicas, directory, sockets: directory },
    config: { 'cluster-node-timeout': '2000', ...config },
  })
  return {
    nodes,
    moveSlot: (slot, to, onKey) => moveSlot(nodes, { slot, to, onKey }),
    async stop() {
      await stop()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

async function moveSlot(
  nodes: readonly ClusterNode[],
  { slot, to, onKey }: { slot: number; to: ClusterNode; onKey: (() => Promise<void>) | undefined },
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
  const views = await Promise.all(nodes.map(({ admin }) => viewOf(admin)))
  const primaries = nodes.filter((_, index) => views[index]?.self.primary === null)
  for (const node of [to, from, ...primaries]) {
    await node.admin.cluster('SETSLOT', slot, 'NODE', idOf(to))
  }
}
