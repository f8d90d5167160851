import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import type { Redis } from 'ioredis'
import { expect, test } from 'vitest'
import {
  articleKeys,
  type Keys,
  type SessionStore,
  type SessionStoreOptions,
} from '../src/index.ts'
import { codeOf, idOf, tokens } from './fixture.ts'
import { keysInParts } from './keys-in-parts.ts'
import { Model } from './model.ts'
import { issueToken, runWriteSession } from './write-session.ts'

const clock = { now: 1_700_000_000_000 }

interface Tested {
  server: { readonly redis: Redis }
  /** A store on this server with these options, which is ready. */
  open(options: Partial<SessionStoreOptions>): Promise<SessionStore>
  /** Random lists of steps. Default 30. */
  runs?: number
}

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
  if (kind === 'login') return await runWriteSession(store, token, 'ada', item)
  if (kind === 'view') return await store.recordView(token, item).catch(codeOf)
  if (kind === 'patch') return await store.patch(token, fields, { ifVersion }).catch(codeOf)
  return await store.logout(token)
}

function playModel(model: Model, token: string, step: Step, now: number): unknown {
  const { kind, item, fields, ifVersion } = step
  if (kind === 'login') return model.writeSession(token, 'ada', item, now)
  if (kind === 'view') return model.recordView(token, item, now)
  if (kind === 'patch') return model.patch(token, fields, ifVersion, now)
  return model.logout(token)
}

/** Ignores the order of items that were viewed at the same time. */
const byItem = (viewed: unknown) =>
  Array.isArray(viewed)
    ? viewed.toSorted((a, b) => (a.item as string).localeCompare(b.item as string))
    : viewed

async function expectModel(
  { server }: Tested,
  { store, model, sessions }: { store: SessionStore; model: Model; sessions: string[] },
) {
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

/** Declares the tests that every way of sending passes. */
export function testModel(tested: Tested): void {
  const { server, open, runs = 30 } = tested
  const storeWith = (keys: Keys = articleKeys) =>
    open({
      keys,
      idleSeconds: Number.POSITIVE_INFINITY, // the times of the concurrent sessions differ by a day
      tokens: { ...tokens, clock: () => clock.now },
    })

  test('keeps the records described in Redis in Action', async () => {
    const store = await storeWith()
    const token = issueToken(store)
    const id = idOf(token)
    await runWriteSession(store, token, 'ada', 'book')
    expect(await server.redis.hgetall('login:')).toEqual({ [id]: 'ada' })
    expect(Number(await server.redis.zscore('recent:', id))).toBe(clock.now / 1000) // 7.0 prints more digits
    expect(await server.redis.zrange(`viewed:${id}`, '0', '-1')).toEqual(['book'])
    expect(await server.redis.zrange('viewed:', '0', '-1', 'WITHSCORES')).toEqual(['book', '-1'])
  })

  test('matches a plain model', async () => {
    const store = await storeWith()
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
        await expectModel(tested, { store, model, sessions })
      }),
      { numRuns: runs },
    )
  })

  test.each([
    ['articles', articleKeys],
    ['in parts', keysInParts(8)],
  ])('%s keys: concurrent sessions match a plain model', async (_, keys) => {
    const store = await storeWith(keys)
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
        await expectModel(tested, { store, model, sessions })
      }),
      { numRuns: Math.ceil(0.6 * runs) },
    )
  })
}
