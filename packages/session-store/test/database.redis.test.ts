import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import type { SessionStore } from '../src/index.ts'
import { newStore } from './fixture.ts'

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
  const store = newStore({ redis: `unix://${server.socket}?db=5` })
  await store.ready()
  const { token } = await store.login('ada')
  await store.recordView(token, 'book')
  await store.janitor().runOnce()
  expect(await databases()).toEqual(['db5'])
})

test('a database that does not exist makes ready() fail, and nothing is written to another one', async () => {
  const store = newStore({ redis: `unix://${server.socket}?db=99` })
  await expect
    .poll(() => failureOf(store))
    .toMatchObject(refusal(99, 'ERR DB index is out of range'))
  await expect(store.login('ada')).rejects.toMatchObject({ code: 'ONETRIP_NOT_SENT' })
  await expect(store.janitor().runOnce()).rejects.toMatchObject({ code: 'ONETRIP_NOT_SENT' })
  expect(await databases()).toEqual([])
})

test('after a reconnect, nothing is written to another database', async () => {
  const admin = server.redis
  await admin.call('ACL', 'SETUSER', 'guest', 'on', '>pw', '~*', '&*', '+@all')
  const store = newStore({ redis: `unix://guest:pw@localhost${server.socket}?db=5` })
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
