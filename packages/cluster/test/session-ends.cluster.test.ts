import { clusterOfThisFile } from '@onetrip/stack/testing/cluster.ts'
import { expect, test } from 'vitest'
import { idOf, readyStore } from '../../session-store/test/fixture.ts'
import { cluster } from '../src/index.ts'
import { loginOn } from './cluster-places.ts'

const servers = clusterOfThisFile()

const storeForThisTest = () => {
  const redis = { nodes: servers.nodes.map(({ address }) => address) }
  return readyStore({ ...cluster({ redis }), deadlineMs: 20_000 })
}

/** The node that has a subscriber. */
async function subscribed() {
  for (const node of servers.nodes) {
    if (String(await node.admin.client('LIST', 'TYPE', 'PUBSUB')).includes('id=')) return node
  }
  throw new Error('no node has a subscriber')
}

test('sessions of all nodes are reported, also after the node of the subscription was lost', async () => {
  const [store, elsewhere] = [await storeForThisTest(), await storeForThisTest()]
  const sessions = await Promise.all([0, 1, 2].map((node) => loginOn(store, node)))
  const told: string[] = []
  await elsewhere.onSessionEnded({
    ended: (id) => void told.push(id),
    held: () => sessions.map(({ token }) => idOf(token)),
    lost: () => void told.push('lost'),
    regained: () => void told.push('regained'),
  })
  const [first, second, third] = sessions
  if (!first || !second || !third) throw new Error('no sessions')
  await store.logout(first.token)
  await expect.poll(() => told).toEqual([idOf(first.token)])
  const node = await subscribed()
  node.program.signal('SIGSTOP')
  await expect.poll(() => told).toContain('lost')
  node.program.signal('SIGCONT')
  await expect.poll(() => told.slice(-2)).toEqual(['regained', idOf(first.token)])
  await Promise.all([second, third].map(({ token }) => store.logout(token)))
  const all = sessions.map(({ token }) => idOf(token))
  await expect.poll(() => told).toEqual(expect.arrayContaining(all))
})
