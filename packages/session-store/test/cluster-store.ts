import type { clusterOfThisFile } from '@onetrip/stack/testing/cluster.ts'
import { onTestFinished } from 'vitest'
import { clusterSender, createCluster, partitionedKeys } from '../src/cluster/index.ts'
import { readyStore, tokens } from './fixture.ts'
import type { Clock } from './retention-fixture.ts'

export const keys = partitionedKeys(16)

/** A store on the nodes of a cluster, and its client. Both are closed when the current test ends. */
export async function clusterStoreForThisTest(
  { nodes }: ReturnType<typeof clusterOfThisFile>,
  clock?: Clock,
) {
  const client = createCluster(nodes.map(({ port }) => ({ host: '127.0.0.1', port })))
  onTestFinished(() => client.disconnect())
  const store = await readyStore({
    sender: clusterSender({ client }),
    keys,
    ...(clock && { tokens: { ...tokens, clock: () => clock.ms } }),
  })
  return { store, client }
}
