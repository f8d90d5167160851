import { setTimeout as delay } from 'node:timers/promises'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { prefixedKeys } from '../src/index.ts'
import { adminForThisTest, newStore, readyStore, warningsOfThisTest } from './fixture.ts'
import { layouts } from './retention-fixture.ts'

const server = redisOfThisFile()
const url = () => `unix://${server.socket}`

describe.each(layouts)('%s', (_, layout) => {
  const prefix = 'shop:'
  const keys = prefixedKeys(prefix, layout)
  const id = 'any'
  const startAt = (options = {}) =>
    newStore({ redis: `unix://${server.socket}`, keys: layout, ...options }).ready()

  test.each([
    [keys.login(id), 'sorted set', () => server.redis.zadd(keys.login(id), 1, 'x'), 'hash'],
    [keys.recent(id), 'set', () => server.redis.sadd(keys.recent(id), 'x'), 'sorted set'],
    [keys.popular(id), 'string', () => server.redis.set(keys.popular(id), 'x'), 'sorted set'],
  ])('a key %s that is a %s stops the start', async (key, type, write, wanted) => {
    await write()
    const before = await server.redis.keys('*')
    const message = `the key ${key} is a ${type}, but the store needs a ${wanted}`
    await expect(startAt({ prefix })).rejects.toMatchObject({
      code: 'ONETRIP_INVALID_INPUT',
      message: expect.stringContaining(message),
    })
    expect(await server.redis.keys('*')).toEqual(before) // nothing was written
    await server.redis.del(key)
    await startAt({ prefix })
  })

  test('a user without the permission +type can start', async () => {
    const warnings = warningsOfThisTest()
    await server.redis.call('ACL', 'SETUSER', 'default', '-type')
    onTestFinished(async () => void (await server.redis.call('ACL', 'SETUSER', 'default', '+@all')))
    await server.redis.set(layout.login('any'), 'of another program')
    await startAt()
    expect(warnings).toEqual([])
  })
})

const start = () => readyStore({ redis: `unix://${server.socket}` })

const configure = (policy: string, maxmemory = '100mb') =>
  server.redis.config('SET', 'maxmemory-policy', policy, 'maxmemory', maxmemory)

test.each([
  ['allkeys-lru', '100mb', 'evicts sessions'],
  ['volatile-ttl', '100mb', 'idempotency keys'], // only the keys with an expiry
  ['allkeys-lru', '0', undefined],
  ['noeviction', '100mb', undefined],
])('%s with %s of memory: a start warns that Redis %s', async (policy, maxmemory, words) => {
  const warnings = warningsOfThisTest()
  await configure(policy, maxmemory)
  await start()
  expect(warnings).toEqual(
    words ? [{ code: 'ONETRIP_EVICTION', message: expect.stringContaining(words) }] : [],
  )
})

test('a user that may not use the keys cannot start', async () => {
  await server.redis.call('ACL', 'SETUSER', 'shop', 'on', 'nopass', '+@all', '~shop:*', '&shop:*')
  const shop = `unix://shop:any@localhost${server.socket}`
  await expect(newStore({ redis: shop }).ready()).rejects.toMatchObject({
    code: 'ONETRIP_REFUSED',
    message: 'Redis refused HGET (command 1 of 2): NOPERM',
  })
  await newStore({ redis: shop, prefix: 'shop:' }).ready()
})

test('a start waits while Redis is busy with a script', async () => {
  const store = await readyStore({ redis: url() })
  await server.redis.config('SET', 'busy-reply-threshold', '1')
  const script = adminForThisTest(server.socket)
  const running = script.eval('while true do end', 0).catch((error: Error) => error.message)
  await expect.poll(() => server.redis.ping().catch(String)).toContain('BUSY')
  const ready = store.ready()
  expect(await Promise.race([ready, delay(200, 'waiting')])).toBe('waiting')
  await server.redis.call('SCRIPT', 'KILL')
  await ready
  expect(await running).toContain('killed')
})

test('a user without the permission for INFO can start', async () => {
  await configure('allkeys-lru')
  await server.redis.call('ACL', 'SETUSER', 'shop', 'on', 'nopass', '~*', '&*', '+@all', '-info')
  const warnings = warningsOfThisTest()
  const login = { username: 'shop', password: 'any', enableReadyCheck: false }
  await readyStore({ redis: { path: server.socket, ...login } })
  expect(warnings).toEqual([])
})

test('without a subscriber, it is a process warning', async () => {
  const emit = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  onTestFinished(() => emit.mockRestore())
  await configure('allkeys-lfu')
  await start()
  expect(emit.mock.calls).toEqual([
    [expect.stringContaining('allkeys-lfu'), { code: 'ONETRIP_EVICTION' }],
  ])
})
