import { setImmediate } from 'node:timers/promises'
import { dumpOf, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { partitionedKeys } from '../src/cluster/index.ts'
import {
  articleKeys,
  commandStats,
  type Keys,
  parseInfo,
  type SessionStore,
  type StrategyName,
  strategyNames,
} from '../src/index.ts'
import { codeOf, gone, idOf, inMemory, readyStore, tokens } from './fixture.ts'
import { Model } from './model.ts'
import { issueToken, runUpdateToken } from './update-token.ts'

const server = redisOfThisFile()

const clock = { now: 1_700_000_000_000 }

const storeOf = (strategy: StrategyName, keys: Keys = articleKeys) =>
  readyStore({
    url: `unix://${server.socket}`,
    strategy,
    keys,
    idleSeconds: Number.POSITIVE_INFINITY, // the times of the concurrent sessions differ by a day
    tokens: { ...tokens, clock: () => clock.now },
  })

const step = fc.record({
  kind: fc.constantFrom('login', 'view', 'view', 'view', 'patch', 'patch', 'logout'),
  session: fc.nat({ max: 2 }),
  fields: fc.dictionary(
    fc.constantFrom('cart', 'theme', '__proto__', 'überraschung'),
    fc.option(fc.jsonValue(), { nil: undefined }),
    { noNullPrototype: true },
  ),
  ifVersion: fc.option(fc.nat({ max: 3 }), { nil: undefined }),
  item: fc.oneof(
    fc.nat({ max: 40 }).map((number) => `item ${number}`),
    fc.constantFrom('__proto__', 'überraschung', '🦊'),
  ),
  at: fc.integer({ min: 1_700_000_000_000, max: 1_700_000_100_000 }),
  pause: fc.boolean(),
})
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never

async function play(store: SessionStore, token: string, step: Step): Promise<unknown> {
  const { kind, item, fields, ifVersion } = step
  if (kind === 'login') return await runUpdateToken(store, token, 'ada', item)
  if (kind === 'view') return await store.recordView(token, item).catch(codeOf)
  if (kind === 'patch') return await store.patch(token, fields, { ifVersion }).catch(codeOf)
  return await store.logout(token)
}

function playModel(model: Model, token: string, step: Step, now: number): unknown {
  const { kind, item, fields, ifVersion } = step
  if (kind === 'login') return model.updateToken(token, 'ada', item, now)
  if (kind === 'view') return model.recordView(token, item, now)
  if (kind === 'patch') return model.patch(token, fields, ifVersion, now)
  return model.logout(token)
}

/** Ignores the order of items that were viewed at the same time. */
const byItem = (viewed: unknown) =>
  Array.isArray(viewed)
    ? viewed.toSorted((a, b) => (a.item as string).localeCompare(b.item as string))
    : viewed

async function expectModel(store: SessionStore, model: Model, sessions: string[]) {
  for (const token of sessions) {
    const user = model.login.get(token)
    const ended = 'ONETRIP_UNKNOWN_SESSION'
    expect(await store.checkToken(token).catch(codeOf)).toEqual(
      user ? { user, lastSeenAt: model.recent.get(token) } : ended,
    )
    const viewed = await store.viewedItems(token).catch(codeOf)
    expect(byItem(viewed)).toEqual(byItem(user ? model.viewedItems(token) : ended))
    expect(await store.data(token).catch(codeOf)).toEqual(model.dataOf(token))
  }
  expect(await server.redis.keys('data:*')).toHaveLength(model.data.size)
  const popular = await store.popularItems(1_000)
  expect(new Map(popular.map(({ item, views }) => [item, views]))).toEqual(model.views)
  const descending = (numbers: Iterable<number>) => [...numbers].sort((a, b) => b - a)
  expect(popular.map(({ views }) => views)).toEqual(descending(model.views.values()))
  const recent = await store.recentSessions()
  expect(recent.map(({ lastSeenAt }) => lastSeenAt)).toEqual(descending(model.recent.values()))
}

describe.each(strategyNames)('%s', (strategy) => {
  test('keeps the records described in the source articles', async () => {
    const store = await storeOf(strategy)
    const token = issueToken(store)
    const id = idOf(token)
    await runUpdateToken(store, token, 'ada', 'book')
    expect(await server.redis.hgetall('login:')).toEqual({ [id]: 'ada' })
    expect(Number(await server.redis.zscore('recent:', id))).toBe(clock.now / 1000) // 7.0 prints more digits
    expect(await server.redis.zrange(`viewed:${id}`, '0', '-1')).toEqual(['book'])
    expect(await server.redis.zrange('viewed:', '0', '-1', 'WITHSCORES')).toEqual(['book', '-1'])
  })

  test('a view of an ended session is undone', async () => {
    const store = await storeOf(strategy)
    const [here, ended] = [issueToken(store), issueToken(store)]
    await runUpdateToken(store, here, 'ada', 'book')
    const before = await dumpOf(server.redis)
    for (const item of ['book', 'pen']) {
      const error = { ...gone, mayHaveWritten: false }
      await expect(store.recordView(ended, item)).rejects.toMatchObject(error)
    }
    expect(await dumpOf(server.redis)).toEqual(before)
  })

  test('matches a plain model', async () => {
    const store = await storeOf(strategy)
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        await server.redis.flushall()
        const model = new Model()
        const sessions = [0, 1, 2].map(() => issueToken(store))
        for (const step of steps) {
          clock.now += 1
          const token = sessions[step.session] ?? ''
          const result = await play(store, token, step)
          expect(result).toEqual(playModel(model, token, step, clock.now))
        }
        await expectModel(store, model, sessions)
      }),
      { numRuns: strategy === 'naive' ? 10 : 30 },
    )
  })

  test.each([
    ['articles', articleKeys],
    ['partitioned', partitionedKeys(8)],
  ])('%s keys: concurrent sessions match a plain model', async (_, keys) => {
    const store = await storeOf(strategy, keys)
    const script = fc.array(step, { maxLength: 15 })
    await fc.assert(
      fc.asyncProperty(fc.array(script, { minLength: 1, maxLength: 6 }), async (scripts) => {
        await server.redis.flushall()
        clock.now = 1_700_000_000_000
        const sessions = scripts.map(() => issueToken(store))
        const playAll = async (steps: Step[], session: number) => {
          for (const step of steps) {
            if (step.pause) await setImmediate()
            clock.now = step.at // the store reads it synchronously
            await play(store, sessions[session] ?? '', step)
          }
        }
        await Promise.all(scripts.map(playAll))

        const model = new Model()
        for (const [session, steps] of scripts.entries()) {
          for (const step of steps) playModel(model, sessions[session] ?? '', step, step.at)
        }
        await expectModel(store, model, sessions)
      }),
      { numRuns: strategy === 'naive' ? 4 : 20 },
    )
  })

  test.skipIf(inMemory)(
    'a view is one write of five commands, or one for each of them',
    async () => {
      const store = await storeOf(strategy)
      const { token } = await store.login('ada')
      await server.redis.config('RESETSTAT')
      await store.recordView(token, 'book')
      const stats = parseInfo(await server.redis.info('all'))
      const names = [...commandStats(stats).keys()].filter((name) => /^(z|h[gs])/.test(name))
      expect(names.sort()).toEqual(['hget', 'zadd', 'zincrby', 'zremrangebyrank'])
      if (strategy === 'naive') expect(stats.get('total_connections_received')).toBe('1')
      // The INFO is one more.
      else
        expect(Number(stats.get('total_reads_processed')) - 1).toBe(
          strategy === 'sequential' ? 5 : 1,
        )
    },
  )
})
