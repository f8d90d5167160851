import type { clusterOfThisFile } from '@onetrip/stack/testing/cluster.ts'
import { onTestFinished } from 'vitest'
import { clusterSender, createCluster, partitionedKeys } from '../src/cluster/index.ts'
import { createSessionStore } from '../src/core/index.ts'

export const tokens = { secrets: ['a-secret-for-tests-a-secret-for-tests'] }
export const strategies = ['sequential', 'pipeline', 'batch'] as const
export const keys = partitionedKeys(16)

/** A store on the nodes of a cluster, and its client. Both are closed when the current test ends. */
export async function clusterStoreForThisTest(
  { nodes }: ReturnType<typeof clusterOfThisFile>,
  strategy: (typeof strategies)[number],
) {
  const client = createCluster(nodes.map(({ port }) => ({ host: '127.0.0.1', port })))
  const store = createSessionStore({
    sender: clusterSender({ client, strategy }),
    keys,
    tokens,
    deadlineMs: 20_000,
    janitor: 'elsewhere',
  })
  onTestFinished(async () => {
    await store.close()
    client.disconnect()
  })
  await store.ready()
  return { store, client }
}
