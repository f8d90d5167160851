import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import {
  createSessionStore,
  type SessionStoreOptions,
  type StoreWarning,
  safeRedisOptions,
  strategyNames,
  warningChannel,
} from '../src/core/index.ts'

const server = redisOfThisFile()
const tokens = { secrets: ['a-secret-for-tests-a-secret-for-tests'] }

const warnings: StoreWarning[] = []
const remember = (warning: unknown) => void warnings.push(warning as StoreWarning)

beforeEach(() => warningChannel.subscribe(remember))
afterEach(() => {
  warningChannel.unsubscribe(remember)
  warnings.length = 0
})

async function start(options: Partial<SessionStoreOptions> = {}): Promise<void> {
  const url = `unix://${server.socket}`
  const store = createSessionStore({ url, tokens, janitor: 'elsewhere', ...options })
  onTestFinished(() => store.close())
  await store.ready()
}

const configure = (policy: string, maxmemory = '100mb') =>
  server.redis.config('SET', 'maxmemory-policy', policy, 'maxmemory', maxmemory)

test.each(strategyNames)('%s: warns if Redis may evict sessions', async (strategy) => {
  await configure('allkeys-lru')
  await start({ strategy })
  expect(warnings).toEqual([
    {
      code: 'ONETRIP_EVICTION',
      message:
        'Redis has maxmemory-policy allkeys-lru: at maxmemory it evicts sessions; with articleKeys, all of them at once. Set maxmemory-policy noeviction',
    },
  ])
})

test('with a volatile policy, the warning names the keys with an expiry', async () => {
  await configure('volatile-ttl')
  await start()
  expect(warnings.map(({ message }) => message).join()).toContain(
    "evicts counters of attempts, idempotency keys and the janitor's",
  )
})

test('no warning without maxmemory, or with noeviction', async () => {
  await configure('allkeys-lru', '0')
  await start()
  await configure('noeviction')
  await start()
  expect(warnings).toEqual([])
})

test('a user without the permission for INFO can start', async () => {
  await configure('allkeys-lru')
  await server.redis.call('ACL', 'SETUSER', 'shop', 'on', 'nopass', '~*', '+@all', '-info')
  const client = new Redis(server.socket, {
    ...safeRedisOptions,
    username: 'shop',
    password: 'any',
    enableReadyCheck: false,
  })
  onTestFinished(() => client.disconnect())
  await start({ url: undefined, client })
  expect(warnings).toEqual([])
})

test('without a subscriber, it is a process warning', async () => {
  warningChannel.unsubscribe(remember)
  const emit = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  onTestFinished(() => emit.mockRestore())
  await configure('allkeys-lfu')
  await start()
  expect(emit.mock.calls).toEqual([
    [expect.stringContaining('allkeys-lfu'), { code: 'ONETRIP_EVICTION' }],
  ])
})
