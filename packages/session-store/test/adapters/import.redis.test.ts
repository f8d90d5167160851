import { RedisStore } from 'connect-redis'
import session from 'express-session'
import { createClient } from 'redis'
import { describe, expect, onTestFinished, test } from 'vitest'
import { expressSessionStore } from '../../src/express-session.ts'
import { fastifySessionStore } from '../../src/fastify-session.ts'
import { type ImportProgress, importConnectRedis } from '../../src/index.ts'
import { Clock, evictOnly, retentionServer } from '../retention-fixture.ts'
import { warningsOfThisTest } from './fixture.ts'

const server = retentionServer()
const IDLE_SECONDS = 3600

/** A store, and connect-redis with its client of node-redis. */
async function bothForThisTest(prefix?: string) {
  const clock = new Clock()
  const store = await server.storeForThisTest(clock, { idleSeconds: IDLE_SECONDS })
  const client = createClient({ socket: { path: server.socket, tls: false } })
  client.on('error', () => undefined)
  await client.connect()
  onTestFinished(() => client.destroy())
  const old = new RedisStore({ client, ...(prefix && { prefix }) })
  const send = (command: string[]) => client.sendCommand<unknown>(command)
  return { clock, store, old, client, send }
}

const cookieFor = (seconds?: number) => {
  const cookie = new session.Cookie()
  if (seconds !== undefined) cookie.maxAge = 1000 * seconds
  return cookie
}
const make = (old: RedisStore, id: string, fields: object, seconds?: number) =>
  old.set(id, { ...fields, cookie: cookieFor(seconds) } as unknown as session.SessionData)

describe('importConnectRedis', () => {
  test('copies the sessions of connect-redis, and a second run changes nothing', async () => {
    const { store, old, send } = await bothForThisTest()
    const adapter = expressSessionStore(store)
    for (let index = 0; index < 250; index++) await make(old, `s${index}`, { index }, 600)
    const progress: ImportProgress[] = []
    const onProgress = (now: ImportProgress) => progress.push(structuredClone(now))
    const options = { send, batchSize: 20, onProgress }
    const all = { imported: 250, existing: 0, skipped: {} }
    expect(await importConnectRedis(store, options)).toEqual(all)
    expect(progress.length).toBeGreaterThan(10)
    expect(progress.at(-1)).toEqual(all)
    expect(await adapter.get('s42')).toEqual(await old.get('s42'))

    // Changes that requests made meanwhile stay.
    await store.external.patch('s1', { index: 'changed' })
    await adapter.destroy('s2')
    expect(await importConnectRedis(store, { send })).toEqual({
      imported: 0,
      existing: 249,
      skipped: { destroyed: 1 },
    })
    expect(await adapter.get('s1')).toMatchObject({ index: 'changed' })
    expect(await adapter.get('s2')).toBe(null)
    expect(await old.length()).toBe(250)
  })

  test('a session keeps its remaining lifetime, at most the idle timeout', async () => {
    const { clock, store, client, send } = await bothForThisTest()
    const make = async (id: string, seconds?: number) => {
      await client.set(`sess:${id}`, JSON.stringify({ cookie: {} }))
      if (seconds) await client.expire(`sess:${id}`, seconds)
    }
    await make('minute', 60)
    await make('day', 86_400)
    await make('ever')
    expect((await importConnectRedis(store, { send })).imported).toBe(3)
    const left = async () =>
      (await expressSessionStore(store).ids())?.sort().concat(await endedByTheJanitor())
    const endedByTheJanitor = async () => {
      await store.janitor(evictOnly).runOnce()
      return (await server.redis.zcard('recent:')) === 0 ? ['none in Redis'] : []
    }
    clock.pass(20)
    expect(await left()).toEqual(['day', 'ever', 'minute'])
    clock.pass(41)
    expect(await left()).toEqual(['day', 'ever'])
    clock.pass(IDLE_SECONDS - 62)
    expect(await left()).toEqual(['day', 'ever'])
    clock.pass(2)
    expect(await left()).toEqual(['none in Redis'])
  })

  test('skips keys that are not sessions, with the reason', async () => {
    const { store, old, client, send } = await bothForThisTest('s*[1]:')
    const garbage = {
      json: '{"cookie":{}',
      text: 'hello',
      empty: '',
      null: 'null',
      number: '1',
      list: '[{"cookie":{}}]',
      cookieless: '{"user":"ada"}',
      'bad cookie': '{"cookie":7}',
      expired: '{"cookie":{"expires":"2001-01-01T00:00:00.000Z"}}',
      large: JSON.stringify({ cookie: {}, text: 'x'.repeat(20_000) }),
      '': '{"cookie":{}}',
      ['i'.repeat(2_000)]: '{"cookie":{}}',
    }
    for (const [id, text] of Object.entries(garbage)) await client.set(`s*[1]:${id}`, text)
    await client.hSet('s*[1]:hash', 'x', 'y')
    await client.set('sx1:other', '{"cookie":{}}')
    await make(old, 'good', { user: 'ada' })
    const proto = '{"cookie":{},"__proto__":{"admin":true}}'
    await client.set('s*[1]:proto', proto)
    expect(await importConnectRedis(store, { send, prefix: 's*[1]:' })).toEqual({
      imported: 2,
      existing: 0,
      skipped: {
        'not a string': 1,
        'not JSON': 3,
        'not a session': 5,
        expired: 1,
        'beyond the limits of the store': 3,
      },
    })
    expect((await expressSessionStore(store).ids())?.sort()).toEqual(['good', 'proto'])
    const found = await expressSessionStore(store).get('proto')
    expect(Object.keys(found ?? {}).sort()).toEqual(['__proto__', 'cookie'])
  })

  test.each(['TYPE', 'GET', 'PTTL'])(
    'skips a session that expires before %s as expired',
    async (step) => {
      const { store, old, client, send } = await bothForThisTest()
      await make(old, 'one', { user: 'ada' }, 600)
      const sendLate = async (command: string[]) => {
        if (command[0] === step) await client.del('sess:one')
        return await send(command)
      }
      expect(await importConnectRedis(store, { send: sendLate })).toEqual({
        imported: 0,
        existing: 0,
        skipped: { expired: 1 },
      })
    },
  )

  test('stops when its signal is aborted, and checks its options', async () => {
    const { store, old, send } = await bothForThisTest()
    await make(old, 'one', {})
    const signal = AbortSignal.abort(new Error('enough'))
    await expect(importConnectRedis(store, { send, signal })).rejects.toThrow('enough')
    for (const wrong of [{}, { send, batchSize: 0 }, { send, prefix: 1 }, { send: 'x' }]) {
      await expect(importConnectRedis(store, wrong as { send: typeof send })).rejects.toMatchObject(
        { code: 'ONETRIP_INVALID_INPUT' },
      )
    }
    const broken = () => Promise.reject(new Error('connection lost'))
    await expect(importConnectRedis(store, { send: broken })).rejects.toThrow('connection lost')
  })
})

describe.each([
  ['express-session', expressSessionStore],
  ['@fastify/session', fastifySessionStore],
] as const)('migrateFrom, %s', (_, make_) => {
  test('moves a session when it is first read', async () => {
    const { store, old } = await bothForThisTest()
    const adapter = make_(store, { migrateFrom: old })
    await make(old, 'one', { user: 'ada' }, 600)
    const before = await old.get('one')
    const found = await Promise.all(Array.from({ length: 20 }, () => adapter.get('one')))
    expect(found).toEqual(found.map(() => before))
    expect(await old.length()).toBe(0)
    expect(await adapter.length()).toBe(1)
    expect(await adapter.get('two')).toBe(null)
  })

  test('destroying a session destroys it in both stores', async () => {
    const { store, old } = await bothForThisTest()
    const adapter = make_(store, { migrateFrom: old })
    await make(old, 'one', { user: 'ada' })
    await adapter.destroy('one')
    expect(await old.get('one')).toBe(null)
    // A process of the previous version saves the session late.
    await make(old, 'one', { user: 'ada' })
    expect(await adapter.get('one')).toBe(null)
    expect(await old.get('one')).toBe(null)
  })

  test('a session beyond dataLimits does not lock its user out, and moves once the limit is raised', async () => {
    const warnings = warningsOfThisTest()
    const { clock, store, old } = await bothForThisTest()
    const adapter = make_(store, { migrateFrom: old })
    const large = { cart: 'x'.repeat(20_000) }
    for (const id of ['large one', 'large two']) await make(old, id, large, 600)
    expect(await adapter.get('large one')).toBe(null)
    expect(await adapter.get('large two')).toBe(null)
    expect(warnings).toEqual([
      {
        code: 'ONETRIP_SESSION_NOT_MOVED',
        message: expect.stringMatching(/data field "cart" has 20002 bytes.* Raise dataLimits/),
      },
    ])
    expect(warnings[0]?.message).not.toContain('large')
    const dataLimits = { fieldBytes: 30_000 }
    const roomy = await server.storeForThisTest(clock, { idleSeconds: IDLE_SECONDS, dataLimits })
    const moved = await make_(roomy, { migrateFrom: old }).get('large one')
    expect(moved).toMatchObject(large)
    expect(await old.length()).toBe(1)
  })
})
