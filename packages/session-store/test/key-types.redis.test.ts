import { setTimeout as delay } from 'node:timers/promises'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  createSessionStore,
  operationChannel,
  prefixedKeys,
  type SessionStoreOptions,
} from '../src/core/index.ts'
import { warningsOfThisTest } from './fixture.ts'
import { layouts } from './retention-fixture.ts'

const server = redisOfThisFile()
const tokens = { secrets: ['a-secret-for-tests-a-secret-for-tests'] }

function storeForThisTest(options: Partial<SessionStoreOptions>) {
  const url = `unix://${server.socket}`
  const store = createSessionStore({ url, tokens, janitor: 'elsewhere', ...options })
  onTestFinished(() => store.close())
  return store
}

const refusal = (key: string, type: string, wanted: string) => ({
  code: 'ONETRIP_INVALID_INPUT',
  message: `the key ${key} is a ${type}, but the store needs a ${wanted}: another program uses this database. Use another database, or the option prefix`,
})

describe.each(layouts)('%s', (_, layout) => {
  for (const prefix of ['', 'shop:']) {
    const keys = prefixedKeys(prefix, layout)
    const id = 'any'

    test.each([
      [keys.login(id), 'sorted set', () => server.redis.zadd(keys.login(id), 1, 'x'), 'hash'],
      [keys.recent(id), 'set', () => server.redis.sadd(keys.recent(id), 'x'), 'sorted set'],
      [keys.popular(id), 'string', () => server.redis.set(keys.popular(id), 'x'), 'sorted set'],
    ])('a key %s that is a %s stops the start', async (key, type, write, wanted) => {
      await write()
      const before = await server.redis.keys('*')
      const store = storeForThisTest({ keys: layout, prefix })
      await expect(store.ready()).rejects.toMatchObject(refusal(key, type, wanted))
      expect(await server.redis.keys('*')).toEqual(before) // nothing was written
      await server.redis.del(key)
      await store.ready()
    })
  }

  test('other keys may have any type', async () => {
    for (const key of [layout.viewed('x'), layout.data('x'), layout.sessions('x'), 'shop:login:']) {
      await server.redis.set(key, 'of another program')
    }
    await storeForThisTest({ keys: layout }).ready()
  })

  test('the types are checked in one round trip', async () => {
    await storeForThisTest({ keys: layout }).ready() // records the number of partitions
    const own = storeForThisTest({ keys: layout })
    const lists: string[][] = []
    const listen = (message: unknown) => lists.push((message as { commands: string[] }).commands)
    operationChannel.start.subscribe(listen)
    onTestFinished(() => void operationChannel.start.unsubscribe(listen))
    await own.ready()
    const checks = lists.filter((commands) => commands.includes('TYPE'))
    expect(checks).toEqual([Array(3 * layout.parts().length).fill('TYPE')])
  })

  test('a user without the permission +type can start', async () => {
    const warnings = warningsOfThisTest()
    await server.redis.call('ACL', 'SETUSER', 'default', '-type')
    onTestFinished(async () => void (await server.redis.call('ACL', 'SETUSER', 'default', '+@all')))
    await server.redis.set(layout.login('any'), 'of another program')
    await storeForThisTest({ keys: layout }).ready()
    expect(warnings).toEqual([])
  })
})

test('ready() rejects if the user of Redis may not use the keys', async () => {
  await server.redis.call('ACL', 'SETUSER', 'shop', 'on', 'nopass', '+@all', '~shop:*')
  const url = `unix://shop:any@localhost${server.socket}`
  await expect(storeForThisTest({ url }).ready()).rejects.toMatchObject({
    code: 'ONETRIP_REFUSED',
    message: 'Redis refused HGET (command 1 of 1): NOPERM',
  })
  await storeForThisTest({ url, prefix: 'shop:' }).ready()
})

test('ready() waits while Redis is busy with a script', async () => {
  const store = storeForThisTest({})
  await store.ready()
  await server.redis.config('SET', 'busy-reply-threshold', '1')
  const script = server.redis.duplicate()
  const running = script.eval('while true do end', 0).catch((error: Error) => error.message)
  onTestFinished(() => script.disconnect())
  await expect.poll(() => server.redis.ping().catch(String)).toContain('BUSY')
  const ready = store.ready()
  expect(await Promise.race([ready, delay(200, 'waiting')])).toBe('waiting')
  await server.redis.call('SCRIPT', 'KILL')
  await ready
  expect(await running).toContain('killed')
})
