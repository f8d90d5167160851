import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { describe, expect, onTestFinished, test } from 'vitest'
import { articleKeys as keys, strategyNames } from '../src/core/index.ts'
import { chooseEvictions, evictSessions, oldestSessions } from '../src/core/retention/retention.ts'
import { idOf } from './fixture.ts'
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
  test.each(strategyNames)('%s: trims to the maximum, oldest first', async (strategy) => {
    const clock = new Clock()
    const store = await server.storeForThisTest(clock, { keys, strategy })
    const tokens = await logIn(store, clock, 30)
    await store.touch(tokens[0] ?? '') // the oldest, but refreshed
    const janitor = store.janitor({ ...evictOnly, maxSessions: 12, batchSize: 5 })
    expect(await janitor.runOnce()).toMatchObject({ worked: true, evicted: 18 })
    expect(await present(store, tokens)).toEqual(
      tokens.map((_, index) => index === 0 || index >= 19),
    )
    expect(await janitor.runOnce()).toMatchObject({ worked: true, evicted: 0 })
  })

  test('ends only sessions that were idle for longer than the limit', async () => {
    const clock = new Clock()
    const store = await server.storeForThisTest(clock, { keys, idleSeconds: 100 })
    const tokens = await logIn(store, clock, 10)
    clock.pass(94) // they were last seen 103, 102, 101, 100 … seconds ago
    const run = await store.janitor({ ...evictOnly, batchSize: 2 }).runOnce()
    expect(run.evicted).toBe(3)
    expect(await present(store, tokens)).toEqual(tokens.map((_, index) => index >= 3))
  })

  test('removes everything of an evicted session except its item counts', async () => {
    const clock = new Clock()
    const store = await server.storeForThisTest(clock, { keys })
    await logIn(store, clock, 20)
    await store.janitor({ ...evictOnly, maxSessions: 0, batchSize: 3 }).runOnce()
    const left = await server.dump()
    expect(Object.keys(left).filter((key) => !keys.allPopular().includes(key))).toEqual([])
    expect(await store.popularItems(100)).toHaveLength(20)
  })

  test('keeps a session that is refreshed between reading and evicting', async () => {
    const clock = new Clock()
    const store = await server.storeForThisTest(clock, { keys })
    const tokens = await logIn(store, clock, 6)
    const limits = { maxSessions: 3, idleBefore: 0, settledBefore: 0, batchSize: 10 }
    const evictions = chooseEvictions(await server.run(oldestSessions(keys, 10)), limits)
    clock.pass(1)
    await store.recordView(tokens[1] ?? '', 'book')
    const ended = await server.run(evictSessions(keys, evictions, limits))
    expect(ended.map(({ id }) => id).sort()).toEqual(
      [tokens[0], tokens[2]].map((token) => idOf(token ?? '')).sort(),
    )
    expect(await present(store, tokens)).toEqual([false, true, false, true, true, true])
    expect((await store.viewedItems(tokens[1] ?? '')).map(({ item }) => item)).toEqual([
      'book',
      'item 1',
    ])
  })

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
            await store.janitor({ ...evictOnly, ...limits }).runOnce()
            const idleBefore = clock.seconds - action.idleSeconds
            const newestFirst = [...lastSeenAt].sort(([, a], [, b]) => b - a)
            for (const [rank, [token, seen]] of newestFirst.entries()) {
              if (rank >= action.maxSessions || seen < idleBefore) lastSeenAt.delete(token)
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

    function storeOfRun(clock: Clock) {
      return server.storeForThisTest(clock, { keys, idleSeconds: 1_000_000 })
    }
  })

  test('publishes its progress', async () => {
    const clock = new Clock()
    const store = await server.storeForThisTest(clock, { keys })
    await logIn(store, clock, 12)
    const surplus: (number | undefined)[] = []
    const finished: number[] = []
    await store
      .janitor({
        ...evictOnly,
        maxSessions: 2,
        batchSize: 5,
        onProgress(event) {
          if (event.type === 'step') surplus.push(event.surplus)
          if (event.type === 'run') finished.push(event.evicted)
        },
      })
      .runOnce()
    expect(surplus.at(-1)).toBe(0)
    expect(surplus).toEqual(surplus.toSorted((a, b) => Number(b) - Number(a)))
    expect(finished).toEqual([10])
  })
})

test('sessions that end between reading and evicting count towards the maximum', async () => {
  const clock = new Clock()
  const store = await server.storeForThisTest(clock)
  const tokens = await logIn(store, clock, 6)
  const { lastSeenAt } = await store.checkToken(tokens[0] ?? '')
  const limits = {
    maxSessions: 4,
    idleBefore: lastSeenAt / 1000 + 0.5,
    settledBefore: 0,
    batchSize: 10,
  }
  const evictions = chooseEvictions(await server.run(oldestSessions(keys, 10)), limits)
  await Promise.all(tokens.slice(4).map((token) => store.logout(token)))
  const ended = await server.run(evictSessions(keys, evictions, limits))
  // Four are left, which is the maximum; one of them is idle.
  expect(ended.map(({ id }) => id)).toEqual([idOf(tokens[0] ?? '')])
  expect(await present(store, tokens)).toEqual([false, true, true, true, false, false])
})

test('works when memory is full', async () => {
  const server = await redisForThisTest()
  const admin = new Redis(server.socket)
  onTestFinished(() => admin.disconnect())
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
