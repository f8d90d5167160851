import type { SessionStore } from '@onetrip/session-store'
import { clusterOfThisFile, testCluster } from '@onetrip/stack/testing/cluster.ts'
import { expect, onTestFinished, test, vi } from 'vitest'
import { idOf, readyStore } from '../../session-store/test/fixture.ts'
import { cluster } from '../src/index.ts'
import { loginOn, placeOf } from './cluster-places.ts'

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

/** Watches these sessions. Returns those whose end was reported. */
async function watched(store: SessionStore, tokens: readonly string[]): Promise<string[]> {
  const told: string[] = []
  for (const token of tokens) await store.watchSession(token, () => told.push(token))
  return told
}

/** A session on each node. */
const logInOnEach = async (store: SessionStore) => {
  const sessions = await Promise.all([0, 1, 2].map((node) => loginOn(store, node)))
  return sessions.map(({ token }) => token)
}

/** As if the message had been lost. */
const endSilently = (store: SessionStore, token: string, nodes = servers.nodes) =>
  nodes[placeOf(store.keys.login(idOf(token)))]?.admin.hdel(
    store.keys.login(idOf(token)),
    idOf(token),
  )

test('sessions of all nodes are reported, also after the node of the subscription was lost', async () => {
  const [store, elsewhere] = [await storeForThisTest(), await storeForThisTest(undefined, 2_000)]
  const tokens = await logInOnEach(store)
  const [first = '', second = '', third = ''] = tokens
  const told = await watched(elsewhere, tokens)
  await store.logout(first)
  await expect.poll(() => told).toEqual([first])
  await endSilently(store, second)
  const node = await subscribed()
  const others = servers.nodes.filter((other) => other !== node)
  node.program.signal('SIGSTOP')
  // Not only until a connection is opened again: those for commands may be first, and the subscription would go on.
  await expect.poll(() => subscribed(others).catch(() => null)).not.toBeNull()
  node.program.signal('SIGCONT')
  await expect.poll(() => told).toEqual([first, second])
  await expect.poll(areAllUp).toBe(true) // the others may have marked the paused node as failed
  // Its connections to the paused node may have to be opened again.
  await expect.poll(() => store.logout(third).catch(() => null)).not.toBeNull()
  await expect.poll(() => told).toEqual(tokens)
})

test('while a node is dead, sessions of the others are reported; its own are checked when it is back', async () => {
  const { nodes, stop } = await testCluster({ config: { appendfsync: 'always' } })
  onTestFinished(() => stop())
  const store = await storeForThisTest(nodes, 2_000)
  const [silent, ended] = [await logInOnEach(store), await logInOnEach(store)]
  const told = await watched(store, [...silent, ...ended])
  const dead = await subscribed(nodes)
  const place = nodes.indexOf(dead)
  const others = [0, 1, 2].filter((other) => other !== place)
  for (const token of silent) await endSilently(store, token, nodes)
  expect(told).toEqual([])
  dead.program.signal('SIGKILL')
  await expect.poll(() => new Set(told)).toEqual(new Set(others.map((other) => silent[other])))
  for (const other of others) {
    await store.logout(ended[other] ?? '')
    await expect.poll(() => told).toContain(ended[other])
  }
  expect(told).toHaveLength(4)
  await dead.restart()
  await expect.poll(() => told).toContain(silent[place])
})
