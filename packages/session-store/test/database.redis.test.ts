import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import type { SessionStore } from '../src/index.ts'
import { isIoredis5 } from '../src/redis/ioredis-version.ts'
import { clientForThisTest, newStore } from './fixture.ts'

const server = redisOfThisFile()

const databases = async () => (await server.redis.info('keyspace')).match(/db\d+/g) ?? []

/** How `ready` fails. The reason is known only after Redis has replied. */
const failureOf = (store: SessionStore) => store.ready(300).catch((error: unknown) => error)

const refusal = (database: number, why: string) => ({
  code: 'ONETRIP_NOT_SENT',
  cause: {
    message: expect.stringMatching(`^Redis refused to select database ${database}: ${why}`),
  },
})

test('all keys are in the database of the URL', async () => {
  const store = newStore({ url: `unix://${server.socket}?db=5` })
  await store.ready()
  const { token } = await store.login('ada')
  await store.recordView(token, 'book')
  await store.janitor().runOnce()
  expect(await databases()).toEqual(['db5'])
})

test('a database that does not exist makes ready() fail, and nothing is written to another one', async () => {
  const store = newStore({ url: `unix://${server.socket}?db=99` })
  await expect
    .poll(() => failureOf(store))
    .toMatchObject(refusal(99, 'ERR DB index is out of range'))
  await expect(store.login('ada')).rejects.toMatchObject({ code: 'ONETRIP_NOT_SENT' })
  await expect(store.janitor().runOnce()).rejects.toMatchObject({ code: 'ONETRIP_NOT_SENT' })
  expect(await databases()).toEqual([])
})

test('the error reports a wrong password', async () => {
  await server.redis.call('ACL', 'SETUSER', 'guest', 'on', '>pw', '~*', '&*', '+@all')
  const url = `unix://guest:wrong@localhost${server.socket}?db=5`
  const store = newStore({ url })
  await expect
    .poll(() => failureOf(store))
    .toMatchObject({ cause: { message: expect.stringMatching(/^WRONGPASS/) } })
})

test('after a reconnect, nothing is written to another database', async () => {
  const admin = server.redis
  await admin.call('ACL', 'SETUSER', 'guest', 'on', '>pw', '~*', '&*', '+@all')
  const store = newStore({ url: `unix://guest:pw@localhost${server.socket}?db=5` })
  await store.ready()
  const { token } = await store.login('ada')
  await admin.call('ACL', 'SETUSER', 'guest', '-select')
  await admin.call('CLIENT', 'KILL', 'USER', 'guest')
  const seen = new Set<string>()
  const view = () => store.recordView(token, 'book').then(() => 'done', String)
  await expect
    .poll(async () => seen.add(await view()) && [...seen].join())
    .toContain('there is no connection')
  await expect.poll(() => failureOf(store)).toMatchObject(refusal(5, 'NOPERM'))
  expect(seen).not.toContain('done')
  expect(await databases()).toEqual(['db5'])
  await admin.call('ACL', 'SETUSER', 'guest', '+select')
  await expect.poll(view).toBe('done')
  expect(await databases()).toEqual(['db5'])
})

test('an injected client is not used for another database after a reconnect, and stays as it is', async () => {
  const admin = server.redis
  await admin.call('ACL', 'SETUSER', 'guest', 'on', '>pw', '~*', '&*', '+@all')
  const login = { username: 'guest', password: 'pw', db: 5 }
  const client = clientForThisTest(server.socket, login)
  const own = () => [client.select, client.sendCommand, { ...client.options }]
  const before = own()
  const store = newStore({ client })
  await store.ready()
  const { token } = await store.login('ada')
  await admin.call('ACL', 'SETUSER', 'guest', '-select')
  await admin.call('CLIENT', 'KILL', 'USER', 'guest')
  await expect.poll(() => failureOf(store)).toMatchObject(refusal(5, 'NOPERM'))
  expect(store.info).toMatchObject({ connections: 1, ready: 0 })
  await expect(store.recordView(token, 'book')).rejects.toMatchObject(refusal(5, 'NOPERM'))
  expect(client.status).toBe('ready') // the application still uses it
  const id = await client.client('ID')

  await admin.call('ACL', 'SETUSER', 'guest', '+select')
  const view = () => store.recordView(token, 'book').then(() => 'done', String)
  await expect.poll(view).toBe('done')
  expect(await databases()).toEqual(['db5'])
  expect(await client.client('ID')).toBe(id)
  expect(own()).toEqual(before)
})

// Without a ready check, only ioredis 6 waits for SELECT.
test.each([
  ['not yet connected', {}],
  ...(isIoredis5 ? [] : [['without a ready check', { enableReadyCheck: false }] as const]),
  ['connected', { lazyConnect: false }],
] as const)(
  'an injected client with a database that does not exist is not used: %s',
  async (_, options) => {
    const client = clientForThisTest(server.socket, { ...options, db: 99 })
    client.on('error', () => undefined)
    if ('lazyConnect' in options) await expect.poll(() => client.status).toBe('ready')
    const store = newStore({ client })
    await expect(store.login('ada')).rejects.toMatchObject({ code: 'ONETRIP_NOT_SENT' })
    await expect.poll(() => failureOf(store)).toMatchObject(refusal(99, 'ERR'))
    expect(await databases()).toEqual([])
  },
)

test('a connected client with a valid database is used', async () => {
  const client = clientForThisTest(server.socket, { db: 5 })
  await client.connect()
  await client.select(6)
  const store = newStore({ client })
  await store.ready()
  await store.login('ada')
  expect(await databases()).toEqual(['db6'])
})
