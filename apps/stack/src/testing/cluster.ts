import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { moveSlot } from '../cluster/move-slot.ts'
import { type ClusterNode, type LocalCluster, startCluster } from '../cluster.ts'

export type TestNode = ClusterNode

export interface TestCluster extends LocalCluster {
  /** `moveSlot` of cluster/move-slot.ts for these nodes. */
  moveSlot(slot: number, to: ClusterNode, onKey?: () => Promise<void>): Promise<void>
}

export interface TestClusterOptions {
  /** Number of primaries. Default 3. */
  nodes?: number
  /** Replicas per primary. In `nodes`, they follow the primaries. Default 0. */
  replicas?: number
  config?: Record<string, string>
}

/** A Redis Cluster for tests, on loopback, without users. `stop()` removes its data. */
export async function testCluster(options: TestClusterOptions = {}): Promise<TestCluster> {
  const { nodes: primaries = 3, replicas = 0, config } = options
  const directory = await mkdtemp(join(tmpdir(), 'onetrip-cluster-'))
  const { stop, ...cluster } = await startCluster({
    ...{ primaries, replicas, directory, sockets: directory },
    config: { 'cluster-node-timeout': '2000', ...config },
  })
  return {
    ...cluster,
    moveSlot: (slot, to, onKey) => moveSlot(cluster.nodes, { slot, to, ...(onKey && { onKey }) }),
    async stop() {
      await stop()
      await rm(directory, { recursive: true, force: true })
    },
  }
}
