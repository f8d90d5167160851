import { clusterOfThisFile, testCluster } from '@onetrip/stack/testing/cluster.ts'
import { expect, onTestFinished, test, vi } from 'vitest'
import { idOf, readyStore } from '../../session-store/test/fixture.ts'
import { cluster } from '../src/index.ts'
import { idWithoutSession, loginOn } from './cluster-places.ts'

vi.setConfig({ testTimeout: 180_000 }) // a cluster needs time to take note of a dead node

const servers = clusterOfThisFile()

const storeForThisTest = (nodes = servers.nodes, deadlineMs = 20_000) => {
  const redis = { nodes: nodes.map(({ address }) => address) }
  return readyStore({ ...cluster({ redis }), deadlineMs })
}

/** The node that has a subscriber. */
async function subscribed(nodes = servers.nodes) {
  for (const node of nodes) {
    if (String(await node.admin.client('LIST', 'TYPE', 'PUBSUB')).includes('id=')) return node
  }
  throw new Error('no node has a subscriber')
}

const areAllUp = async () => {
  const states = await Promise.all(servers.nodes.map(({ admin }) => admin.cluster('INFO')))
  return states.every((state) => String(state).includes('cluster_state:ok'))
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
  await expect.poll(areAllUp).toBe(true) // the others may have marked the paused node as failed
  for (const { token } of [second, third]) {
    // Its connections to the paused node may have to be opened again.
    await expect.poll(() => store.logout(token).catch(() => null)).not.toBeNull()
  }
  const all = sessions.map(({ token }) => idOf(token))
  await expect.poll(() => told).toEqual(expect.arrayContaining(all))
})

test('while a node is dead, sessions of the others are reported; its own are checked when it is back', async () => {
  const { nodes, stop } = await testCluster({ config: { appendfsync: 'always' } })
  onTestFinished(() => stop())
  const store = await storeForThisTest(nodes, 2_000)
  const sessions = await Promise.all([0, 1, 2].map((node) => loginOn(store, node)))
  const told: string[] = []
  await store.onSessionEnded({
    ended: (id) => void told.push(id),
    held: () => [0, 1, 2].map(idWithoutSession),
    lost: () => void told.push('lost'),
    regained: () => void told.push('regained'),
  })
  const dead = await subscribed(nodes)
  const place = nodes.indexOf(dead)
  const others = [0, 1, 2].filter((other) => other !== place)
  dead.program.signal('SIGKILL')
  await expect
    .poll(() => new Set(told))
    .toEqual(new Set(['lost', 'regained', ...others.map(idWithoutSession)]))
  for (const other of others) {
    const { token = '' } = sessions[other] ?? {}
    await store.logout(token)
    await expect.poll(() => told).toContain(idOf(token))
  }
  expect(told.filter((word) => /^[lr]/.test(word))).toEqual(['lost', 'regained'])
  expect(told).not.toContain(idWithoutSession(place))
  await dead.restart()
  await expect.poll(() => told).toContain(idWithoutSession(place))
})
