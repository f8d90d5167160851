import { clusterOfThisFile } from '@onetrip/stack/testing/cluster.ts'
import calculateSlot from 'cluster-key-slot'
import { expect, test } from 'vitest'
import {
  Clock,
  evictOnly,
  logIn,
  present,
  sweep,
  withAnyClock,
} from '../../session-store/test/retention-fixture.ts'
import { clusterStoreForThisTest, keys } from './cluster-store.ts'

const servers = clusterOfThisFile()

const storeForThisTest = async (clock: Clock) =>
  withAnyClock((await clusterStoreForThisTest(servers, clock)).store)

const allKeys = async () =>
  (await Promise.all(servers.nodes.map(({ admin }) => admin.keys('*')))).flat()

/** Whether each session is among the latest of its part: each part has its share of the maximum, rounded up. */
function latestOfParts(tokens: readonly string[], maxSessions: number): boolean[] {
  const share = Math.ceil(maxSessions / keys.parts().length)
  const parts = tokens.map((token) => keys.login(token.split('.', 1)[0] ?? ''))
  return parts.map((part, index) => {
    const later = parts.slice(index + 1).filter((other) => other === part)
    return later.length < share
  })
}

test('sweeps the keys of every node', async () => {
  const clock = new Clock()
  const store = await storeForThisTest(clock)
  const tokens = await logIn(store, clock, 60)
  const { token: unviewed } = await store.login('ada')
  for (const token of [...tokens, unviewed]) await store.patch(token, { cart: [] })
  for (const { admin } of servers.nodes) {
    for (const key of await admin.keys('*')) {
      if (/^(login|recent):/.test(key)) await admin.del(key)
    }
  }
  clock.pass(3600)
  // For each session: the views or data, and the entry in the user's list.
  expect((await sweep(store)).swept).toBe(61 + 61)
  const ofSessions = (key: string) =>
    (['viewed', 'data', 'sessions'] as const)
      .map((kind) => keys.find(kind).ownerOf(key))
      .find((owner) => owner !== undefined)
  expect((await allKeys()).filter(ofSessions)).toEqual([])
})

test('ends the oldest sessions of each part, and rescales the counts of all', async () => {
  const clock = new Clock()
  const store = await storeForThisTest(clock)
  const tokens = await logIn(store, clock, 60)
  const janitor = store.janitor({ maxSessions: 5, batchSize: 7, keptItems: 10 })
  const kept = latestOfParts(tokens, 5)
  const evicted = kept.filter((isKept) => !isKept).length
  expect(evicted).toBeGreaterThan(0)
  expect(await janitor.runOnce()).toMatchObject({ worked: true, evicted })
  expect(await present(store, tokens)).toEqual(kept)
  clock.pass(86_400)
  expect(await janitor.runOnce()).toMatchObject({ itemsDropped: 60, itemsHalved: 0 })
})

test('trims while slots move to other nodes', async () => {
  const clock = new Clock()
  const store = await storeForThisTest(clock)
  const options = { ...evictOnly, maxSessions: 5, batchSize: 2, intervalSeconds: 0.001 }
  const janitor = store.janitor(options)
  janitor.start() // a move may make a run fail; the next run works
  const tokens: string[] = []
  const slots = new Set(keys.parts().map(({ login }) => calculateSlot(login)))
  for (const [move, slot] of [...slots].entries()) {
    const target = servers.nodes[move % 3]
    const [created] = await Promise.all([
      logIn(store, clock, 12),
      target && servers.moveSlot(slot, target),
    ])
    tokens.push(...created)
  }
  await expect.poll(() => present(store, tokens)).toEqual(latestOfParts(tokens, 5))
  await janitor.stop()
})
