import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach } from 'vitest'
import { viewOf } from '../cluster/view.ts'
import { type ClusterNode, type LocalCluster, startCluster } from '../cluster.ts'
import { until } from '../until.ts'
import { moveSlot } from './move-slot.ts'

export interface TestCluster extends LocalCluster {
  /** `moveSlot` of move-slot.ts for these nodes. */
  moveSlot(slot: number, to: ClusterNode, onKey?: () => Promise<void>): Promise<void>
}

interface TestClusterOptions {
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
    primaries,
    replicas,
    directory,
    sockets: directory,
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

/** A node that was killed or paused still counts as failed for seconds after it serves again. */
async function noneFailed(nodes: readonly ClusterNode[]): Promise<boolean> {
  const views = await Promise.all(nodes.map(({ admin }) => viewOf(admin)))
  const seen = views.flatMap((view) => [...view.nodes.values()])
  return !seen.some(({ flags }) => flags.includes('fail'))
}

/**
 * A Redis Cluster for all tests of a file. Before each test, the data is removed and no node counts as failed. Call it at the top level of the
 * file; use its properties in tests and hooks.
 */
export function clusterOfThisFile(
  options?: TestClusterOptions,
): Pick<TestCluster, 'nodes' | 'moveSlot'> {
  let cluster: TestCluster

  beforeAll(async () => {
    cluster = await testCluster(options)
  })

  beforeEach(async () => {
    await until(() => noneFailed(cluster.nodes))
    await Promise.all(cluster.nodes.map(({ admin }) => admin.flushall()))
  })

  afterAll(() => cluster.stop())

  return {
    get nodes() {
      return cluster.nodes
    },
    get moveSlot() {
      return cluster.moveSlot
    },
  }
}
