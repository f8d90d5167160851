import { cluster } from '@onetrip/cluster'
import { SessionStore } from '@onetrip/session-store'
import { clusterOfThisFile } from '@onetrip/stack/testing/cluster.ts'
import { Cluster } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { ExpressSessionStore } from '../src/express.ts'
import { SECRET } from './fixture.ts'

const servers = clusterOfThisFile()
const userOf = ({ user }: Record<string, unknown>) => user as string | undefined
const of = (user: string, fields: object = {}) => ({ cookie: {}, user, ...fields }) as never

async function storeForThisTest() {
  const redis = { nodes: servers.nodes.map(({ address }) => address) }
  const options = { tokens: { secrets: [SECRET] }, janitor: 'elsewhere' } as const
  const store = new SessionStore({ ...cluster({ redis, deadlineMs: 20_000 }), ...options })
  onTestFinished(() => store.close())
  await store.ready()
  return store
}

const ids = Array.from({ length: 20 }, (_, index) => `session ${index}`)

test('sessions of a user are on all nodes of a cluster', async () => {
  const sessions = new ExpressSessionStore(await storeForThisTest(), { userOf })
  await Promise.all(ids.map((id) => sessions.set(id, of('ada'))))
  await Promise.all(ids.map((id) => sessions.set(id, of('ada', { theme: 'dark' }))))
  expect(await sessions.ofUser('ada')).toHaveLength(20)
  expect(await sessions.endOthers('ada', 'session 0')).toBe(19)
  expect(await sessions.get('session 0')).toMatchObject({ theme: 'dark' })
  expect(await sessions.get('session 1')).toBe(null)
  await expect(sessions.clear()).rejects.toThrow('need a single Redis, not a cluster')
})

test('sessions of connect-redis move, with a prefix that keeps both keys in one slot', async () => {
  const client = new Cluster(servers.nodes.map(({ port }) => ({ host: '127.0.0.1', port })))
  onTestFinished(() => client.disconnect())
  for (const id of ids) await client.set(`sess:${id}`, '{"cookie":{},"user":"bob"}', 'EX', 600)
  const store = await storeForThisTest()
  const options = { userOf, migrateFrom: 'sess:' }
  await expect(new ExpressSessionStore(store, options).get('session 0')).rejects.toMatchObject({
    code: 'ONETRIP_REFUSED',
  })
  const sessions = new ExpressSessionStore(store, { ...options, prefix: 'express:{sess:' })
  for (const id of ids) expect(await sessions.get(id)).toMatchObject({ user: 'bob' })
  for (const id of ids) expect(await client.exists(`sess:${id}`)).toBe(0)
  expect(await sessions.endUserSessions('bob')).toBe(20)
})
