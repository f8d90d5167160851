import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { articleKeys as keys } from '../src/index.ts'
import { oldestSessions } from '../src/retention/evict.ts'
import { type EndIf, endSessions } from '../src/sessions/log-out.ts'
import { adminForThisTest, gone, idOf, inMemory, tokens } from './fixture.ts'
import {
  Clock,
  evictOnly,
  layouts,
  logIn,
  present,
  retentionServer,
  storeOn,
} from './retention-fixture.ts'

const server = retentionServer()

describe.each(layouts)('%s', (_, keys) => {
  test('matches a plain model', async () => {
    const action = fc.oneof(
      fc.record({ kind: fc.constant('login' as const) }),
      fc.record({ kind: fc.constantFrom('view' as const, 'logout' as const), session: fc.nat(9) }),
      fc.record({ kind: fc.constant('pass' as const), seconds: fc.nat(30) }),
      fc.record({
        kind: fc.constant('janitor' as const),
        maxSessions: fc.nat(8),
        idleSeconds: fc.integer({ min: 10, max: 60 }),
        batchSize: fc.integer({ min: 1, max: 9 }),
      }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 40 }), async (actions) => {
        await server.redis.flushall()
        const clock = new Clock()
        const store = await storeOfRun(clock)
        const tokens: string[] = []
        const lastSeenAt = new Map<string, number>()
        for (const action of actions) {
          clock.pass(0.5)
          if (action.kind === 'login') {
            const { token } = await store.login(`user ${tokens.length % 2}`)
            tokens.push(token)
            lastSeenAt.set(token, clock.seconds)
          } else if (action.kind === 'pass') {
            clock.pass(action.seconds)
          } else if (action.kind === 'janitor') {
            const { kind: _, ...limits } = action
            const { idleSeconds, ...others } = limits
            const own = await storeOfRun(clock, idleSeconds)
            await own.janitor({ ...evictOnly, ...others }).runOnce()
            await own.close()
            const idleBefore = clock.seconds - action.idleSeconds
            const newestFirst = [...lastSeenAt].sort(([, a], [, b]) => b - a)
            const parts = Map.groupBy(newestFirst, ([token]) => keys.login(idOf(token)))
            const kept = Math.ceil(action.maxSessions / keys.parts().length)
            for (const [rank, [token, seen]] of [...parts.values()].flatMap((part) => [
              ...part.entries(),
            ])) {
              if (rank >= kept || seen < idleBefore) lastSeenAt.delete(token)
            }
          } else {
            const token = tokens[action.session % tokens.length]
            if (token === undefined) continue
            if (action.kind === 'view') {
              const seen = await store.recordView(token, 'book').then(
                () => true,
                () => false,
              )
              expect(seen).toBe(lastSeenAt.has(token))
              if (seen) lastSeenAt.set(token, clock.seconds)
            } else {
              expect(await store.logout(token)).toBe(lastSeenAt.delete(token))
            }
          }
        }
        expect(await present(store, tokens)).toEqual(tokens.map((token) => lastSeenAt.has(token)))
        const listed = Object.entries(await server.dump())
          .filter(([key]) => key.startsWith(keys.sessions('')))
          .flatMap(([, entries]) => (entries as string[]).filter((_, index) => index % 2 === 0))
        expect(listed.sort()).toEqual([...lastSeenAt.keys()].map(idOf).sort())
        await store.close()
      }),
      { numRuns: 60 },
    )

    function storeOfRun(clock: Clock, idleSeconds = 1_000_000) {
      return server.storeForThisTest(clock, { keys, idleSeconds })
    }
  })
})

/** Ends the sessions that were read, as the janitor does. Returns their ids. */
async function evict(oldest: NonNullable<EndIf['oldest']>, ids: string[]) {
  const users = await server.run(endSessions(keys, ids, { settledBefore: 0, oldest }))
  return ids.filter((_, index) => users[index] !== undefined)
}

test('keeps a session that is refreshed between reading and evicting', async () => {
  const { clock, store } = await server.start()
  const tokens = await logIn(store, clock, 6)
  const { sessions } = await server.run(oldestSessions(keys.recent(''), 3))
  clock.pass(1)
  await store.recordView(tokens[1] ?? '', 'book')
  const seen = sessions.map(([, lastSeen]) => lastSeen)
  const ids = sessions.map(([id]) => id)
  expect(await evict({ idleBefore: 0, keep: 3, seen }, ids)).toEqual([ids[0], ids[2]])
  expect(await present(store, tokens)).toEqual([false, true, false, true, true, true])
  expect((await store.viewedItems(tokens[1] ?? '')).map(({ item }) => item)).toEqual([
    'book',
    'item 1',
  ])
})

test('sessions that end between reading and evicting count towards the maximum', async () => {
  const { clock, store } = await server.start()
  const tokens = await logIn(store, clock, 6)
  const { sessions } = await server.run(oldestSessions(keys.recent(''), 2))
  const seen = sessions.map(([, lastSeen]) => lastSeen)
  await Promise.all(tokens.slice(4).map((token) => store.logout(token)))
  const idleBefore = (seen[0] ?? 0) + 0.5
  // Four are left, which is the maximum; one of them is idle.
  const [first = '', second = ''] = tokens.map(idOf)
  expect(await evict({ idleBefore, keep: 4, seen }, [first, second])).toEqual([first])
  expect(await present(store, tokens)).toEqual([false, true, true, true, false, false])
})

test.skipIf(inMemory)('works when memory is full', async () => {
  const server = await redisForThisTest()
  const admin = adminForThisTest(server.socket)
  const clock = new Clock()
  const store = await storeOn(server.socket, clock)
  const tokens = await logIn(store, clock, 20)
  await store.recordView(tokens[0] ?? '', 'item 0')
  await store.janitor({ maxSessions: 20 }).runOnce() // starts the period of a day, so that rescaling is due
  clock.pass(86_400)
  await admin.config('SET', 'maxmemory', '1')
  await expect(store.login('ada')).rejects.toThrow('OOM')
  const run = await store.janitor({ maxSessions: 5 }).runOnce()
  expect(run).toMatchObject({ worked: true, evicted: 15, itemsHalved: 1, itemsDropped: 19 })
})

const YEAR = 365 * 24 * 3600
const options = (clock: Clock) => ({
  idleSeconds: Number.POSITIVE_INFINITY,
  janitor: false as const,
  tokens: { ...tokens, lifetimeSeconds: 99 * YEAR, clock: () => clock.ms },
})

describe.each(layouts)('%s: without an idle timeout', (_, keys) => {
  test('sessions stay until they are ended, and the janitor ends only those beyond the maximum', async () => {
    const clock = new Clock()
    const store = await server.storeForThisTest(clock, { ...options(clock), keys })
    const { token } = await store.login('ada')
    const { token: guest } = await store.loginGuest()
    await store.patch(guest, { cart: ['book'] })
    clock.pass(9 * YEAR)
    expect(await store.janitor(evictOnly).runOnce()).toMatchObject({ worked: true, evicted: 0 })
    expect(await store.checkToken(token)).toMatchObject({ user: 'ada' })
    const { token: bought } = await store.login('ada', { from: guest })
    expect((await store.data(bought)).fields).toEqual({ cart: ['book'] })
    await store.patch(token, { theme: 'dark' })
    clock.pass(9 * YEAR)
    expect(await store.touch(token)).toMatchObject({ user: 'ada' })
    expect(await store.recordView(token, 'book', { data: true })).toMatchObject({ views: 1 })
    expect((await store.userSessions(token)).sessions).toHaveLength(2)
    expect(await store.revokeSession(token, idOf(bought))).toBe(true)
    expect((await store.userSessions(token)).sessions).toHaveLength(1)
    clock.pass(1)
    await store.login('bob')
    const most = store.janitor({ ...evictOnly, maxSessions: 1 })
    if (keys.parts().length > 1) return // each part may have one
    expect(await most.runOnce()).toMatchObject({ evicted: 1 })
    await expect(store.checkToken(token)).rejects.toMatchObject(gone)
  })
})
