import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { describe, expect, test } from 'vitest'
import { articleKeys as keys, prefixedKeys } from '../src/index.ts'
import { documented, envOf, textArguments } from './example.ts'
import { adminForThisTest, idOf } from './fixture.ts'
import {
  Clock,
  evictOnly,
  layouts,
  logIn,
  present,
  retentionServer,
  storeOn,
  sweep,
  sweepOnly,
} from './retention-fixture.ts'
import { issueToken, runWriteSession } from './write-session.ts'

const server = retentionServer()

describe.each(layouts)('%s', (_, keys) => {
  const lose = async (token: string, ...what: ('login' | 'recent')[]) => {
    const id = idOf(token)
    if (what.includes('login')) await server.redis.hdel(keys.login(id), id)
    if (what.includes('recent')) await server.redis.zrem(keys.recent(id), id)
  }

  test('removes only leftovers of ended sessions', async () => {
    const { clock, store } = await server.start({ keys })
    const whole = await logIn(store, clock, 20)
    clock.pass(3600)
    await store.janitor(sweepOnly).runOnce() // creates the janitor's own keys
    for (const token of whole.slice(0, 3)) await store.patch(token, { cart: [] })
    const foreign = keys.viewed('not-an-id-of-ours')
    await server.redis.set('unrelated', 'x')
    await server.redis.zadd(foreign, 1, 'x')
    await server.redis.hset(keys.login('someone'), 'someone', 'x')
    await server.redis.zadd(`viewed:{99}:${idOf(issueToken(store))}`, 1, 'x') // no such partition
    await server.redis.hset(keys.data('not-an-id-of-ours'), 'x', 1)
    await server.redis.hset(`data:{99}:${idOf(issueToken(store))}`, 'x', 1)
    const { 'janitor:tasks': _tasks, ...before } = await server.dump()

    const broken = await logIn(store, clock, 9)
    for (const token of broken) await store.patch(token, { cart: [] })
    const { token: unviewed } = await store.login('ada')
    await store.patch(unviewed, { cart: [] })
    clock.pass(3600) // so that the tokens were issued long ago
    for (const [index, token] of broken.entries()) {
      if (index < 3) await lose(token, 'login', 'recent')
      else if (index < 6) await lose(token, 'recent')
      else await lose(token, 'login')
    }
    await lose(unviewed, 'login', 'recent')
    // Without a login, the user is unknown, so the sweep of the lists finds the entry.
    expect((await sweep(store)).swept).toBe(10 + 7)
    const { 'janitor:tasks': _later, ...after } = await server.dump()
    const uncounted = (state: Record<string, unknown>) =>
      Object.entries(state).filter(([key]) => !keys.allPopular().includes(key))
    expect(uncounted(after)).toEqual(uncounted(before))
    expect(await present(store, whole)).toEqual(whole.map(() => true))
    expect(await sweep(store)).toMatchObject({ swept: 0 })
  })

  test.each([
    ['recent', 1],
    ['login', 2], // the sweep of the lists finds the entry
  ] as const)(
    'keeps a login that may be in progress, and removes it a minute later (no %s)',
    async (missing, expected) => {
      const { clock, store } = await server.start({ keys })
      const { token } = await store.login('ada')
      await lose(token, missing)
      clock.pass(59)
      expect((await sweep(store)).swept).toBe(0)
      expect(Object.keys(await server.dump())).toContain(keys.sessions('ada'))
      clock.pass(2)
      expect((await sweep(store)).swept).toBe(expected)
      expect(Object.keys(await server.dump())).toEqual(['janitor:tasks'])
    },
  )
})

test.each([
  ['', {}, false],
  ['shop:', {}, true],
  ['shop:', { sweepKeys: false }, false],
  ['', { sweepKeys: true }, true],
])('prefix %j and %o: a sweep looks at all keys: %s', async (prefix, options, all) => {
  const { clock, store } = await server.start({ prefix })
  const own = prefixedKeys(prefix, keys)
  const [lost = ''] = (await logIn(store, clock, 1)).map(idOf)
  await server.redis.del(own.login(lost), own.recent(lost))
  clock.pass(3600)
  await server.redis.config('RESETSTAT')
  const { rescaleEverySeconds, sweepEverySeconds } = sweepOnly
  const janitor = store.janitor({ rescaleEverySeconds, sweepEverySeconds, ...options })
  expect(await janitor.runOnce()).toMatchObject({ sweeping: false, swept: all ? 2 : 0 })
  const scanned = (await server.redis.info('commandstats')).includes('cmdstat_scan:')
  expect(scanned).toBe(all)
})

test('a failed sweep starts again in the next run', async () => {
  const own = await redisForThisTest()
  const admin = adminForThisTest(own.socket)
  const clock = new Clock()
  const store = await storeOn(own.socket, clock)
  const [token = ''] = await logIn(store, clock, 3)
  clock.pass(3600)
  await admin.del(keys.login(idOf(token)), keys.recent(idOf(token)))
  const janitor = store.janitor({ sweepKeys: true })
  await admin.call('ACL', 'SETUSER', 'default', '-scan')
  await expect(janitor.runOnce()).rejects.toThrow('SCAN (command 1 of 1): NOPERM')
  await admin.call('ACL', 'SETUSER', 'default', '+scan')
  // Due again tomorrow, but not finished.
  expect(await janitor.runOnce()).toMatchObject({ swept: 3 + 3, sweeping: false })
  expect(await janitor.runOnce()).toMatchObject({ swept: 0, sweeping: false })
})

test('keeps similar keys of other programs', async () => {
  const store = (await server.start()).store
  const hex = Array.from({ length: 200 }, (_, index) =>
    createHash('md5').update(`${index}`).digest('hex'),
  )
  for (const id of hex) {
    await server.redis.set(`data:${id}`, 'a cached page')
    await server.redis.hset(`viewed:${id}`, 'field', 'value')
  }
  await store.janitor(sweepOnly).runOnce()
  expect(await server.redis.keys('*')).toHaveLength(2 * hex.length + 1) // and the janitor's own key
})

test('skips keys `sessions:…` that are not lists', async () => {
  const { clock, store } = await server.start()
  const tokens = await logIn(store, clock, 20)
  const ids = tokens.map(idOf)
  await server.redis.hdel(keys.login(''), ...ids)
  await server.redis.zrem(keys.recent(''), ...ids)
  clock.pass(3600)
  await server.redis.set(keys.sessions('a string'), 'of another program')
  await server.redis.hset(keys.sessions('a hash'), 'field', 'value')
  // The views of 20 sessions, and their entries in the users' lists.
  expect(await sweep(store, 5)).toMatchObject({ swept: 20 + 20 })
  expect(await server.redis.keys('sessions:*')).toHaveLength(2)
})

test('sessions end even if the key of their list belongs to another program', async () => {
  const { clock, store } = await server.start({ idleSeconds: 60 })
  const tokens = await logIn(store, clock, 10)
  await server.redis.set(keys.sessions('mallory'), 'of another program')
  await runWriteSession(store, issueToken(store), 'mallory')
  clock.pass(3600)
  const janitor = store.janitor({ batchSize: 3, ...evictOnly })
  expect(await janitor.runOnce()).toMatchObject({ evicted: tokens.length + 1 })
  expect(await server.redis.get(keys.sessions('mallory'))).toBe('of another program')
})

test('the documented job, in a process of its own, completes the sweep', async () => {
  const { clock, store } = await server.start()
  const { token } = await store.login('ada')
  await store.endUserSessions('ada')
  await server.redis.zadd(keys.sessions('ada'), clock.seconds, idOf(token)) // the last kind of leftover to be swept
  // More than the steps of one run: each of the three scans takes one step per 100 keys.
  const others = Array.from({ length: 30_000 }, (_, index) => [`other:${index}`, ''])
  await server.redis.mset(Object.fromEntries(others))
  const env = envOf(server.socket)
  await promisify(execFile)(process.execPath, textArguments(documented('janitor.runOnce()')), {
    env,
  })
  expect(await server.redis.exists(keys.sessions('ada'))).toBe(0)
})
