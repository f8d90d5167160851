import type { clusterOfThisFile } from '@onetrip/stack/testing/cluster.ts'
import { readyStore, tokens } from '../../session-store/test/fixture.ts'
import type { Clock } from '../../session-store/test/retention-fixture.ts'
import { clusterSender } from '../src/cluster.ts'
import { partitionedKeys } from '../src/index.ts'
import { Nodes } from '../src/nodes.ts'

export const keys = partitionedKeys(16)

/** A store on the nodes of a cluster, and its client. The store is closed when the current test ends. */
export async function clusterStoreForThisTest(
  { nodes }: ReturnType<typeof clusterOfThisFile>,
  clock?: Clock,
) {
  const known = new Nodes({ nodes: nodes.map(({ address }) => address) }, 20_000)
  const store = await readyStore({
    sender: clusterSender(known, 1_000),
    keys,
    ...(clock && { tokens: { ...tokens, clock: () => clock.ms } }),
  })
  return { store, client: known.client }
}
