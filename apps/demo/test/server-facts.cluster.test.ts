import { cluster } from '@onetrip/cluster'
import { SessionStore } from '@onetrip/session-store'
import { clusterOfThisFile } from '@onetrip/stack/testing/cluster.ts'
import { expect, onTestFinished, test } from 'vitest'
import { serverFacts } from '../src/server-facts.ts'
import { secret } from './support.ts'

const servers = clusterOfThisFile()

test('facts about the nodes of a Redis Cluster', async () => {
  const nodes = servers.nodes.map(({ address }) => address)
  const store = new SessionStore({
    ...cluster({ redis: { nodes }, deadlineMs: 30_000 }),
    tokens: { secrets: [secret] },
    janitor: 'elsewhere',
  })
  onTestFinished(() => store.close())
  await store.ready()
  const facts = await serverFacts(store, 'cluster')()
  expect(facts).toMatchObject({ topology: 'cluster', unavailable: [] })
  expect(facts.nodes.toSorted()).toEqual(servers.nodes.map(({ address }) => address).toSorted())
})
