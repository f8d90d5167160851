import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { writeData } from '../src/data/write.ts'
import { articleKeys, type Keys } from '../src/index.ts'
import { oldestSessions } from '../src/retention/evict.ts'
import { touchSession } from '../src/sessions/check.ts'
import { forgetSessions } from '../src/sessions/list.ts'
import { login } from '../src/sessions/log-in.ts'
import { endSessions } from '../src/sessions/log-out.ts'
import { recordView, recordViewOnce, undoView } from '../src/views/record.ts'
import { type Caller, Running } from './interleavings.ts'
import { layouts, retentionServer } from './retention-fixture.ts'

const server = retentionServer()

// Sessions from before the run were last seen before it, all others later.
const settledBefore = 10

const userOf = (id: string) => `user of ${id}`
const action = fc.record({
  kind: fc.constantFrom(
    ...([
      'login',
      'view',
      'view',
      'touch',
      'patch',
      'patch',
      'logout',
      'evict',
      'orphans',
    ] as const),
  ),
  session: fc.nat(4),
  item: fc.constantFrom('book', 'pen'),
  limits: fc.record({
    maxSessions: fc.nat(5),
    idleBefore: fc.nat(30),
    batchSize: fc.integer({ min: 1, max: 5 }),
  }),
})
type Action = typeof action extends fc.Arbitrary<infer Value> ? Value : never

describe.each(layouts)('%s', (_, keys) => {
  test('views, patches, logins and logouts between the steps of the janitor leave nothing behind', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(action, { minLength: 2, maxLength: 12 }),
        fc.infiniteStream(fc.nat(100)),
        async (actions, order) => {
          await server.redis.flushall()
          const counts = new Map<string, number>()
          const ended = new Set<string>()
          for (let id = 0; id < 3; id++) {
            await server.run(login(keys, { id: `${id}`, user: userOf(`${id}`) }, id))
          }
          const running = actions.map((action, index) => {
            const world = { keys, now: settledBefore + index, counts, ended }
            return new Running(server.redis, callerOf(action, world))
          })
          for (;;) {
            const waiting = running.filter(({ done }) => !done)
            const [pick = 0] = [...order.take(1)]
            const next = waiting[pick % waiting.length]
            if (!next) break
            await next.step()
          }

          const state = await server.dump()
          const parts = keys.parts().map(({ recent }) => server.run(oldestSessions(recent, 100)))
          const recent = (await Promise.all(parts))
            .flatMap(({ sessions }) => sessions.map(([id]) => id))
            .sort()
          for (const id of recent) expect(ended, 'came back').not.toContain(id)
          const expected = new Set([
            ...recent.flatMap((id) => [
              keys.login(id),
              keys.recent(id),
              keys.viewed(id),
              keys.data(id),
              keys.sessions(userOf(id)),
            ]),
            ...keys.allPopular(),
          ])
          expect(Object.keys(state).filter((key) => !expected.has(key))).toEqual([])
          const logins = keys.parts().flatMap(({ login }) => Object.keys(state[login] ?? {}))
          expect(logins.sort()).toEqual(recent)
          for (const [item, views] of counts) {
            const score = await server.redis.zscore(keys.popular(item), item)
            expect(-Number(score), item).toBe(views)
          }
          expect(
            (
              await Promise.all(keys.allPopular().map((key) => server.redis.zcount(key, 0, '+inf')))
            ).reduce((sum, count) => sum + count),
          ).toBe(0)
        },
      ),
      { numRuns: 150 },
    )
  })
})

/** What a call tells its caller about the view. */
type Told = 'counted' | 'unknown' | 'undone'

test('views with idempotency keys and a logout: each call says whether its view may be counted', async () => {
  const keys = articleKeys
  const input = { id: 'a-session', item: 'book', idempotencyKey: 'a key' }
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom(false, false, true), { minLength: 1, maxLength: 4 }),
      // Often several commands of one caller at a time, so that another one is far behind.
      fc.infiniteStream(fc.record({ pick: fc.nat(100), steps: fc.constantFrom(1, 4, 9) })),
      async (views, order) => {
        await server.redis.flushall()
        await server.run(login(keys, { id: input.id, user: 'ada' }, 1))
        const told = new Set<Told>()
        const callers = [loggingOut(), ...views.map((view) => viewing(view, told))]
        const running = callers.map((caller) => new Running(server.redis, caller))
        for (const { pick, steps } of order) {
          const waiting = running.filter(({ done }) => !done)
          const next = waiting[pick % waiting.length]
          if (!next) break
          for (let step = 0; step < steps && !next.done; step++) await next.step()
        }
        const score = await server.redis.zscore(keys.popular(input.item), input.item)
        const count = Math.abs(Number(score))
        expect(told.has('counted') && told.has('undone')).toBe(false)
        if (told.has('counted')) expect(count).toBe(1)
        else if (told.has('unknown')) expect([0, 1]).toContain(count)
        else expect(count).toBe(0)
        if (views.includes(true)) return
        expect(await server.redis.exists(keys.viewed(input.id))).toBe(0)
      },
    ),
    { numRuns: 1_000 },
  )

  function* loggingOut(): Caller {
    yield endSessions(keys, [input.id])
  }

  /** @param isLost Whether the reply to the view is lost. */
  function* viewing(isLost: boolean, told: Set<Told>): Caller {
    const once = recordViewOnce(keys, input, recordView(keys, input, 2))
    type Once = ReturnType<(typeof once)['read']>
    if (isLost) told.add('unknown')
    const { view, isCounted } = (yield once) as Once
    if (isLost) return
    if (view) told.add('counted')
    else {
      yield undoView(keys, { id: input.id })
      told.add(isCounted ? 'unknown' : 'undone')
    }
  }
})

type Oldest = ReturnType<ReturnType<typeof oldestSessions>['read']>

interface World {
  keys: Keys
  /** Unix seconds. */
  now: number
  /** Views of each item that were acknowledged. */
  counts: Map<string, number>
  /** Sessions that a call reported as ended. */
  ended: Set<string>
}

const write = { fields: { set: [['cart', '1']], removed: ['theme'] } } as const

function* callerOf(action: Action, { keys, now, counts, ended }: World): Caller {
  const times = { now: 1000 * now, idleBefore: 0 }
  const { kind, item, limits } = action
  const id = String(action.session)
  if (kind === 'login') {
    const id = `new ${now}`
    yield login(keys, { id, user: userOf(id), label: 'Firefox' }, 1000 * now)
  } else if (kind === 'view') {
    if (yield recordView(keys, { id, item }, 1000 * now))
      counts.set(item, (counts.get(item) ?? 0) + 1)
    else yield undoView(keys, { id, item })
  } else if (kind === 'touch') {
    yield touchSession(keys, id, 1000 * now)
  } else if (kind === 'patch') {
    yield writeData(keys, { ...write, id, mode: 'patch' }, times)
  } else if (kind === 'logout') {
    const [user] = (yield endSessions(keys, [id])) as (string | undefined)[]
    if (user === undefined) return
    ended.add(id)
    yield forgetSessions(keys, user, [id])
  } else {
    const { maxSessions: keep, idleBefore, batchSize } = limits
    for (const { recent } of keys.parts()) {
      const { sessions } = (yield oldestSessions(recent, batchSize)) as Oldest
      if (sessions.length === 0) continue
      const seen = sessions.map(([, lastSeen]) => lastSeen)
      const endIf = {
        settledBefore,
        ...(kind === 'evict' && { oldest: { keep, idleBefore, seen } }),
      }
      const ids = sessions.map(([id]) => id)
      const users = (yield endSessions(keys, ids, endIf)) as (string | undefined)[]
      for (const [index, user] of users.entries()) {
        const id = ids[index] ?? ''
        if (user !== undefined) ended.add(id)
        if (user) yield forgetSessions(keys, user, [id])
      }
    }
  }
}
