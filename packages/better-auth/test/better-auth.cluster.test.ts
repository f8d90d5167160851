import { cluster } from '@onetrip/cluster'
import { SessionStore } from '@onetrip/session-store'
import { clusterOfThisFile } from '@onetrip/stack/testing/cluster.ts'
import { expect, onTestFinished, test } from 'vitest'
import { betterAuthStorage } from '../src/index.ts'

const servers = clusterOfThisFile()
const tokens = Array.from({ length: 20 }, (_, index) => String(index).padStart(32, 'a'))

test('sessions of a user are on all nodes of a cluster', async () => {
  const redis = { nodes: servers.nodes.map(({ address }) => address) }
  const options = { tokens: { secrets: ['x'.repeat(32)] }, janitor: 'elsewhere' } as const
  const store = new SessionStore({ ...cluster({ redis, deadlineMs: 20_000 }), ...options })
  onTestFinished(() => store.close())
  await store.ready()
  const storage = betterAuthStorage(store)
  const saved = (token: string) => JSON.stringify({ session: { token, userId: 'ada' } })
  await Promise.all(tokens.map((token) => storage.set(token, saved(token), 600)))
  const [own = '', ...others] = tokens
  expect(JSON.parse(`${await storage.get('active-sessions-ada')}`)).toHaveLength(20)
  await Promise.all(others.map((token) => storage.delete(token)))
  await Promise.all(others.map((token) => storage.set(token, saved(token), 600)))
  expect(await Promise.all(tokens.map((token) => storage.get(token)))).toEqual([
    saved(own),
    ...others.map(() => null),
  ])
  expect(await storage.increment('limit', 60)).toBe(1)
  await storage.set('verification:x', 'y', 60)
  expect(await storage.getAndDelete('verification:x')).toBe('y')
})
