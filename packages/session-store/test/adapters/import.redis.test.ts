import { describe, expect, test } from 'vitest'
import { expressSessionStore } from '../../src/adapters/express-session.ts'
import { externalSessions } from '../../src/adapters/external-sessions.ts'
import { type ImportProgress, importConnectRedis } from '../../src/adapters/import-connect-redis.ts'
import { articleKeys as keys } from '../../src/core/index.ts'
import { evictOnly, retentionServer } from '../retention-fixture.ts'
import { IDLE_SECONDS, make, migrationForEachTest } from './migration-fixture.ts'

const server = retentionServer()
const bothForThisTest = migrationForEachTest(server)

describe('importConnectRedis', () => {
  test('copies the sessions of connect-redis, and a second run changes no session that was used', async () => {
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
    await externalSessions(store).patch('s1', { index: 'changed' })
    await adapter.destroy('s2')
    await make(old, 's3', { index: 'newer' }, 600)
    expect(await importConnectRedis(store, { send })).toEqual({
      imported: 248,
      existing: 1,
      skipped: { destroyed: 1 },
    })
    expect(await adapter.get('s3')).toMatchObject({ index: 'newer' })
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
      null: 'null',
      cookieless: '{"user":"ada"}',
      expired: '{"cookie":{"expires":"2001-01-01T00:00:00.000Z"}}',
      large: JSON.stringify({ cookie: {}, text: 'x'.repeat(8 * 2 ** 20) }),
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
        'not JSON': 1,
        'not a session': 2,
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

  test('a session that has ended stays blocked for the remaining lifetime of its old key', async () => {
    const { store, old, client, send } = await bothForThisTest()
    await make(old, 'long', {}, 7_200)
    await make(old, 'short', {}, 60)
    await make(old, 'moved', {}, 7_200)
    await client.set('sess:ever', '{"cookie":{}}')
    const adapter = expressSessionStore(store, { migrateFrom: old })
    await adapter.get('moved')
    await importConnectRedis(store, { send })
    const blocked = async (id: string) => await server.redis.ttl(keys.ended(`ext:${id}`))
    const near = (seconds: number) =>
      expect.toSatisfy((found: number) => found > seconds - 60 && found <= seconds)
    const all = async () => await Promise.all(['long', 'ever', 'short', 'moved'].map(blocked))
    expect(await all()).toEqual([near(7_200), near(400 * 86_400), near(60), near(IDLE_SECONDS)])
    for (const id of ['long', 'ever', 'short', 'moved', 'other']) await adapter.destroy(id)
    expect(await all()).toEqual([near(7_200), near(400 * 86_400), near(3_600), near(3_600)])
    expect(await blocked('other')).toEqual(near(IDLE_SECONDS))
    await expressSessionStore(store).destroy('without migrateFrom')
    expect(await blocked('without migrateFrom')).toEqual(near(300))
  })

  test('stops when its signal is aborted, or the connection is lost', async () => {
    const { store, old, send } = await bothForThisTest()
    await make(old, 'one', {})
    const signal = AbortSignal.abort(new Error('enough'))
    await expect(importConnectRedis(store, { send, signal })).rejects.toThrow('enough')
    const broken = () => Promise.reject(new Error('connection lost'))
    await expect(importConnectRedis(store, { send: broken })).rejects.toThrow('connection lost')
  })
})
