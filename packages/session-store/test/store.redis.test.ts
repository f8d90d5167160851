import { setImmediate } from 'node:timers/promises'
import { dumpOf, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { partitionedKeys } from '../src/cluster/index.ts'
import {
  articleKeys,
  createSessionStore,
  type SessionStore,
  strategyNames,
} from '../src/core/index.ts'
import { idOf } from './fixture.ts'
import { Model } from './model.ts'
import { issueToken, runUpdateToken } from './update-token.ts'

const secrets = ['a-secret-for-tests-a-secret-for-tests']

const server = redisOfThisFile()

const codeOf = (error: unknown) => (error as { code: string }).code

describe.each(strategyNames)('%s', (strategy) => {
  let now = 1_700_000_000_000
  let store: SessionStore

  beforeAll(async () => {
    const tokens = { secrets, clock: () => now }
    const url = `unix://${server.socket}`
    store = createSessionStore({ url, strategy, tokens, janitor: 'elsewhere', deadlineMs: 20_000 })
    await store.ready()
  })

  afterAll(() => store.close())

  test('keeps the records described in the source articles', async () => {
    const token = issueToken(store)
    const id = idOf(token)
    await runUpdateToken(store, token, 'ada', 'book')
    expect(await server.redis.hgetall('login:')).toEqual({ [id]: 'ada' })
    expect(await server.redis.zrange('recent:', '0', '-1', 'WITHSCORES')).toEqual([
      id,
      String(now / 1000),
    ])
    expect(await server.redis.zrange(`viewed:${id}`, '0', '-1')).toEqual(['book'])
    expect(await server.redis.zrange('viewed:', '0', '-1', 'WITHSCORES')).toEqual(['book', '-1'])
  })

  test('a view of an ended session is undone', async () => {
    const [here, gone] = [issueToken(store), issueToken(store)]
    await runUpdateToken(store, here, 'ada', 'book')
    const before = await dumpOf(server.redis)
    for (const item of ['book', 'pen']) {
      await expect(store.recordView(gone, item)).rejects.toMatchObject({
        code: 'ONETRIP_UNKNOWN_SESSION',
        mayHaveWritten: false,
      })
    }
    expect(await dumpOf(server.redis)).toEqual(before)
  })

  test('a forged token or an invalid name sends nothing', async () => {
    const token = issueToken(store)
    const forged = `${token.slice(0, -5)}AAAAA`
    const before = await commandsProcessed()
    await expect(store.recordView(forged, 'book')).rejects.toThrow('invalid signature')
    await expect(store.logout('')).rejects.toThrow('malformed')
    for (const item of ['', 'x'.repeat(129), 'a\nb', '\u202ereversed', '\ud800']) {
      await expect(store.recordView(token, item), item).rejects.toThrow(/^item must/)
      await expect(store.login(item), item).rejects.toThrow(/^user must/)
    }
    await expect(store.popularItems(0)).rejects.toThrow('limit')
    expect(await commandsProcessed()).toBe(before + 1) // the INFO before
  })

  test('the error of a refused command has its name and position, and no arguments', async () => {
    const token = issueToken(store)
    await runUpdateToken(store, token, 'ada')
    await server.redis.set(`viewed:${idOf(token)}`, 'not a sorted set')
    const error = await store.recordView(token, 'book').catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'ONETRIP_REFUSED', mayHaveWritten: true, retrySafe: false })
    expect(String(error)).toContain('ZADD (command 2 of 5): WRONGTYPE')
  })

  test('matches a plain model', async () => {
    const action = fc.record({
      kind: fc.constantFrom('login', 'view', 'view', 'view', 'patch', 'patch', 'logout'),
      session: fc.nat({ max: 2 }),
      fields: fc.dictionary(
        fc.constantFrom('cart', 'theme', '__proto__', 'überraschung'),
        fc.option(fc.jsonValue(), { nil: undefined }),
        { noNullPrototype: true },
      ),
      ifVersion: fc.option(fc.nat({ max: 3 }), { nil: undefined }),
      item: fc.option(
        fc.oneof(
          fc.nat({ max: 40 }).map((number) => `item ${number}`),
          fc.constantFrom('__proto__', 'überraschung', '🦊'),
        ),
        { nil: undefined },
      ),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 60 }), async (actions) => {
        await server.redis.flushall()
        const model = new Model()
        const sessions = [0, 1, 2].map(() => issueToken(store))
        for (const { kind, session, item, fields, ifVersion } of actions) {
          now += 1
          const token = sessions[session] ?? ''
          const time = now
          if (kind === 'login') {
            await runUpdateToken(store, token, `user ${session}`, item)
            model.updateToken(token, `user ${session}`, item, time)
          } else if (kind === 'view') {
            const view = await store.recordView(token, item ?? 'nothing').catch(codeOf)
            expect(view).toEqual(model.recordView(token, item ?? 'nothing', time))
          } else if (kind === 'patch') {
            const patched = await store.patch(token, fields, { ifVersion }).catch(codeOf)
            expect(patched).toEqual(model.patch(token, fields, ifVersion, time))
          } else {
            expect(await store.logout(token)).toBe(model.logout(token))
          }
        }
        for (const token of sessions) {
          const user = model.login.get(token)
          expect(await store.checkToken(token).catch(codeOf)).toEqual(
            user ? { user, lastSeenAt: model.recent.get(token) } : 'ONETRIP_UNKNOWN_SESSION',
          )
          expect(await store.viewedItems(token).catch(codeOf)).toEqual(
            user ? model.viewedItems(token) : 'ONETRIP_UNKNOWN_SESSION',
          )
          expect(await store.data(token).catch(codeOf)).toEqual(model.dataOf(token))
        }
        expect(await server.redis.keys('data:*')).toHaveLength(model.data.size)
        const popular = await store.popularItems(1_000)
        expect(new Map(popular.map(({ item, views }) => [item, views]))).toEqual(model.views)
        expect(popular.map(({ views }) => views)).toEqual(
          [...model.views.values()].sort((a, b) => b - a),
        )
        expect((await store.recentSessions()).map(({ lastSeenAt }) => lastSeenAt)).toEqual(
          [...model.recent.values()].sort((a, b) => b - a),
        )
      }),
      { numRuns: strategy.startsWith('naive') ? 10 : 30 },
    )
  })
})

describe.each([
  ['articles', articleKeys],
  ['partitioned', partitionedKeys(8)],
])('%s keys', (_name, keys) => {
  test.each(strategyNames)('%s: concurrent sessions match a plain model', async (strategy) => {
    let now = 0
    const tokens = { secrets, clock: () => now }
    const options = { url: `unix://${server.socket}`, strategy, keys, tokens, deadlineMs: 20_000 }
    const idleSeconds = Number.POSITIVE_INFINITY
    const store = createSessionStore({ ...options, idleSeconds, janitor: 'elsewhere' })
    onTestFinished(() => store.close())
    await store.ready()
    const step = fc.record({
      kind: fc.constantFrom('login', 'view', 'view', 'view', 'patch', 'check', 'logout'),
      item: fc.nat({ max: 30 }).map((number) => `item ${number}`),
      at: fc.integer({ min: 1_700_000_000_000, max: 1_700_000_100_000 }),
      pause: fc.boolean(),
    })
    const script = fc.array(step, { maxLength: 15 })
    await fc.assert(
      fc.asyncProperty(fc.array(script, { minLength: 1, maxLength: 6 }), async (scripts) => {
        await server.redis.flushall()
        now = 1_700_000_000_000
        const model = new Model()
        const sessions = scripts.map(() => issueToken(store))
        const play = async (steps: (typeof scripts)[number], session: number) => {
          const token = sessions[session] ?? ''
          for (const { kind, item, at, pause } of steps) {
            if (pause) await setImmediate()
            now = at // the store reads it synchronously
            if (kind === 'login') await runUpdateToken(store, token, `user ${session}`, item)
            else if (kind === 'view') await store.recordView(token, item).catch(codeOf)
            else if (kind === 'patch') await store.patch(token, { [item]: at }).catch(codeOf)
            else if (kind === 'logout') await store.logout(token)
            else await store.checkToken(token).catch(codeOf)
          }
        }
        await Promise.all(scripts.map(play))

        for (const [session, steps] of scripts.entries()) {
          const token = sessions[session] ?? ''
          for (const { kind, item, at } of steps) {
            if (kind === 'login') model.updateToken(token, `user ${session}`, item, at)
            else if (kind === 'view') model.recordView(token, item, at)
            else if (kind === 'patch') model.patch(token, { [item]: at }, undefined, at)
            else if (kind === 'logout') model.logout(token)
          }
        }
        for (const token of sessions) {
          const user = model.login.get(token)
          expect(await store.checkToken(token).catch(codeOf)).toEqual(
            user ? { user, lastSeenAt: model.recent.get(token) } : 'ONETRIP_UNKNOWN_SESSION',
          )
          const viewed = await store.viewedItems(token).catch(codeOf)
          expect(byItem(viewed)).toEqual(
            byItem(user ? model.viewedItems(token) : 'ONETRIP_UNKNOWN_SESSION'),
          )
          expect(await store.data(token).catch(codeOf)).toEqual(model.dataOf(token))
        }
        const popular = await store.popularItems(1_000)
        expect(new Map(popular.map(({ item, views }) => [item, views]))).toEqual(model.views)
        expect(await server.redis.keys('viewed:*')).toHaveLength(
          model.viewed.size + new Set([...model.views.keys()].map(keys.popular)).size,
        )
      }),
      { numRuns: strategy.startsWith('naive') ? 4 : 20 },
    )
  })
})

/** Ignores the order of items that were viewed at the same time. */
const byItem = (viewed: unknown) =>
  Array.isArray(viewed)
    ? viewed.toSorted((a, b) => (a.item as string).localeCompare(b.item as string))
    : viewed

test('all strategies send the same commands, and pipelines need one round trip', async () => {
  const monitor = await server.redis.duplicate().monitor()
  const seen: string[][] = []
  monitor.on('monitor', (_time, args: string[]) => seen.push(args))
  for (const strategy of strategyNames) {
    seen.length = 0
    const store = createSessionStore({
      url: `unix://${server.socket}`,
      strategy,
      tokens: { secrets, clock: () => 1_700_000_000_000 },
      janitor: 'elsewhere',
    })
    await store.ready()
    const token = issueToken(store)
    await runUpdateToken(store, token, 'ada', 'book')
    await server.redis.echo(strategy)
    const all = () => seen.some(([name]) => name?.toLowerCase() === 'echo')
    await expect.poll(all).toBe(true)
    const ours = seen.filter(([name]) => /^(HSET|Z)/.test(name ?? ''))
    expect(ours.map(([name]) => name)).toEqual([
      'ZADD',
      'HSET',
      'ZADD',
      'ZREMRANGEBYRANK',
      'ZINCRBY',
    ])
    await store.close()
  }
  monitor.disconnect()
})

test('naive: a view is a connection and its commands', async () => {
  // HELLO (ioredis 6), CLIENT SETINFO twice (Redis before 7.2 does not count it), INFO; QUIT
  const expected = [8, 9, 10]
  const store = createSessionStore({
    url: `unix://${server.socket}`,
    strategy: 'naive',
    tokens: { secrets },
    janitor: 'elsewhere',
  })
  onTestFinished(() => store.close())
  const { token } = await store.login('ada')
  const connections = async () =>
    Number(/total_connections_received:(\d+)/.exec(await server.redis.info('stats'))?.[1])
  const opened = await connections()
  const before = await commandsProcessed()
  await store.recordView(token, 'book')
  expect(expected).toContain((await commandsProcessed()) - before - 1) // the INFO before
  expect(await connections()).toBe(opened + 1)
})

async function commandsProcessed(): Promise<number> {
  return Number(/total_commands_processed:(\d+)/.exec(await server.redis.info('stats'))?.[1])
}
