import { SessionStore } from '@onetrip/session-store'
import { clusterSender, createCluster, partitionedKeys } from '@onetrip/session-store/cluster'
import { clusterOfThisFile } from '@onetrip/stack/testing/cluster.ts'
import { expect, onTestFinished, test } from 'vitest'
import { serverFacts } from '../src/server-facts.ts'
import { secret } from './support.ts'

const cluster = clusterOfThisFile()

test('facts about the nodes of a Redis Cluster', async () => {
  const client = createCluster(cluster.nodes.map(({ port }) => ({ host: '127.0.0.1', port })))
  onTestFinished(() => client.disconnect())
  const store = new SessionStore({
    sender: clusterSender({ client }),
    keys: partitionedKeys(),
    tokens: { secrets: [secret] },
    janitor: 'elsewhere',
    deadlineMs: 30_000,
  })
  onTestFinished(() => store.close())
  await store.ready()
  const facts = await serverFacts(store, 'cluster')()
  expect(facts).toMatchObject({ topology: 'cluster', unavailable: [] })
  expect(facts.nodes.toSorted()).toEqual(cluster.nodes.map(({ address }) => address).toSorted())
})
