import type { Request } from 'express'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { expressSessionStore } from '../../src/adapters/express-session.ts'
import { externalSessions } from '../../src/adapters/external-sessions.ts'
import { fastifySessionStore } from '../../src/adapters/fastify-session.ts'
import { contextOf } from '../../src/core/context.ts'
import type { Keys, SessionStore } from '../../src/core/index.ts'
import { evict, type RetentionContext } from '../../src/core/retention/retention-tasks.ts'
import { ownSessionFunctions } from '../../src/core/sessions/own-sessions.ts'
import { userRecords } from '../../src/core/sessions/user-records.ts'
import { layouts, retentionServer } from '../retention-fixture.ts'
import { CommandsInTurn } from './commands-in-turn.ts'

const server = retentionServer()

const userOf = ({ user }: Record<string, unknown>) => user as string | undefined
const adapters = { userOf }
const cookie = {}
/** The sessions of each test: those of ada, one of bob, and one of nobody. */
const sessions = { a: 'ada', b: 'ada', c: 'bob', d: undefined } as const
type Id = keyof typeof sessions
const ids = Object.keys(sessions) as Id[]

const MAXIMUM = 2

/** A store with these sessions, whose entries in the lists are old. */
async function begin(keys: Keys) {
  const { clock, store } = await server.start({ keys, maxSessionsPerUser: MAXIMUM })
  const fill = async () => {
    await server.redis.flushall()
    for (const id of ids)
      await expressSessionStore(store, adapters).set(id, sessionOf(sessions[id]))
  }
  return { clock, store, fill }
}

const sessionOf = (user: string | undefined) => ({ cookie, ...(user && { user }) }) as never

/** Loads a session as express-session does, and returns a function that saves it with changes. */
async function loaded(store: SessionStore, id: Id) {
  const found = await expressSessionStore(store, adapters).get(id)
  return async (own: SessionStore, changes: Record<string, unknown>) => {
    if (!found) return
    const adapter = expressSessionStore(own, adapters)
    const request = { sessionID: id, sessionStore: adapter } as unknown as Request
    const session = adapter.createSession(request, structuredClone(found))
    await adapter.set(id, Object.assign(session, changes))
  }
}

/** Each external session in Redis: its user, the user in its data, and whether it is in the user's list and blocked. */
async function stateOf(keys: Keys) {
  const all = []
  for (const id of [...ids, 'new', 'newer'].map((id) => `ext:${id}`)) {
    const user = await server.redis.hget(keys.login(id), id)
    const text = await server.redis.hget(keys.data(id), 'user')
    all.push({
      id,
      user,
      data: user === null ? null : JSON.parse(text ?? '""'),
      isListed: user ? (await server.redis.zscore(keys.sessions(user), id)) !== null : true,
      isBlocked: (await server.redis.exists(keys.ended(id))) === 1,
    })
  }
  return all
}

/** What holds at any time. */
async function checkLists(keys: Keys): Promise<void> {
  for (const { id, user, isListed } of await stateOf(keys)) {
    expect(isListed, `${id} of ${user} is in the list`).toBe(true)
  }
}

/** What holds after any calls. */
async function checkState(keys: Keys): Promise<void> {
  await checkLists(keys)
  for (const { id, user, data, isBlocked } of await stateOf(keys)) {
    expect(data, id).toBe(user)
    expect(isBlocked && user !== null, `${id} came back`).toBe(false)
  }
}

type End = (store: SessionStore) => Promise<unknown>
const own = (store: SessionStore) => ownSessionFunctions(contextOf(store))

/** Each ends the session `a` of ada. */
const ends: [string, End][] = [
  ['endUserSessions', (store) => own(store).endUserSessions('ada')],
  ['eraseUser', (store) => userRecords(contextOf(store)).eraseUser('ada')],
  ['endOthers', (store) => externalSessions(store).endOthers('ada', 'none')],
  ['destroy', (store) => externalSessions(store).end('a')],
  [
    'the maximum of a user',
    async (store) => {
      for (const id of ['new', 'newer']) {
        await fastifySessionStore(store, adapters).set(id, sessionOf('ada'))
      }
    },
  ],
]

/** Each is a save of a request that has loaded the session `a`. */
const saves: [string, (store: SessionStore) => Promise<(own: SessionStore) => Promise<unknown>>][] =
  [
    [
      '@fastify/session',
      async () => (own) => fastifySessionStore(own, adapters).set('a', sessionOf('ada')),
    ],
    [
      'express-session',
      async (store) => {
        const save = await loaded(store, 'a')
        return (own) => save(own, { theme: 'dark' })
      },
    ],
  ]

describe.each(layouts)('%s', (_, keys) => {
  test.each(ends)(
    'a save at every point of %s, and the reverse: the session stays gone',
    async (_, end) => {
      const { clock, store, fill } = await begin(keys)
      for (const [name, load] of saves) {
        for (const first of [0, 1]) {
          for (let place = 0, isPast = false; !isPast; place++) {
            await fill()
            clock.pass(100)
            const save = await load(store)
            const inTurn = new CommandsInTurn(server.redis)
            const [one, other] = [inTurn.storeFor(store, 0), inTurn.storeFor(store, 1)]
            let sent = 0
            isPast = true
            // The first caller sends `place` commands, then the other one sends all of its own.
            await inTurn.finish([end(one), save(other)], (callers) => {
              const wanted = sent < place ? first : 1 - first
              if (callers.includes(1 - first) && sent >= place) isPast = false
              const at = callers.indexOf(wanted)
              if (callers[Math.max(at, 0)] === first) sent++
              return Math.max(at, 0)
            })
            const [a] = await stateOf(keys)
            expect(a?.user, `${name}, ${first}, ${place}`).toBe(null)
            await save(store)
            expect((await stateOf(keys))[0]?.user, `${name}, later`).toBe(null)
            await checkState(keys)
          }
        }
      }
    },
  )

  const logins: typeof saves = [
    [
      '@fastify/session',
      async () => (own) => fastifySessionStore(own, adapters).set('d', sessionOf('ada')),
    ],
    [
      'express-session',
      async (store) => {
        const save = await loaded(store, 'd')
        return (own) => save(own, { user: 'ada' })
      },
    ],
    [
      'a new session',
      async () => (own) => fastifySessionStore(own, adapters).set('new', sessionOf('ada')),
    ],
    [
      'a session from before userOf',
      async (store) => {
        await externalSessions(store).put('d', sessionOf('ada'))
        return (own) => expressSessionStore(own, adapters).get('d')
      },
    ],
    [
      'the import of a new session',
      async () => (own) =>
        externalSessions(own).add('new', { user: 'ada' }, { user: 'ada', isCopy: true }),
    ],
  ]

  test.each(logins)(
    'a login is in the list before it is in the session: %s',
    async (name, load) => {
      const { store, fill } = await begin(keys)
      await fill()
      const inTurn = new CommandsInTurn(server.redis)
      const login = await load(store)
      await inTurn.finish([login(inTurn.storeFor(store, 0))], async () => {
        await checkLists(keys)
        return 0
      })
      await checkLists(keys)
      const { sessions } = await externalSessions(store).ofUser('ada')
      expect(sessions.map(({ id }) => id)).toContain(name.includes('new') ? 'new' : 'd')
    },
  )

  test('saves, logins, logouts and ends in any order: each session is in the list of its user, or stays gone', async () => {
    const { clock, store, fill } = await begin(keys)
    const action = fc.record({
      kind: fc.constantFrom('put', 'save', 'save', 'get', 'endUser', 'destroy', 'evict', 'page'),
      id: fc.constantFrom(...ids),
      user: fc.constantFrom('ada', 'bob', undefined),
      keep: fc.nat(4),
    })
    const property = fc.asyncProperty(
      fc.array(action, { minLength: 2, maxLength: 6 }),
      fc.infiniteStream(fc.nat(50)),
      async (actions, order) => {
        await fill()
        clock.pass(100)
        const saves = await Promise.all(actions.map(({ id }) => loaded(store, id)))
        const inTurn = new CommandsInTurn(server.redis)
        const calls = actions.map(async ({ kind, id, user, keep }, index) => {
          const mine = inTurn.storeFor(store, index)
          if (kind === 'put') await fastifySessionStore(mine, adapters).set(id, sessionOf(user))
          else if (kind === 'save') await saves[index]?.(mine, { user, theme: index })
          else if (kind === 'get') await expressSessionStore(mine, adapters).get(id)
          else if (kind === 'endUser') await own(mine).endUserSessions(user ?? 'ada')
          else if (kind === 'destroy') await externalSessions(mine).end(id)
          else if (kind === 'page') await externalSessions(mine).ofUser(user ?? 'ada')
          else await evictAll(mine, keep, clock.seconds)
        })
        await inTurn.finish(calls, (callers) => {
          const [choice = 0] = [...order.take(1)]
          return choice % callers.length
        })
        await checkState(keys)
        for (const user of ['ada', 'bob']) await store.endUserSessions(user)
        for (const { user } of await stateOf(keys)) expect(user || null).toBe(null)
      },
    )
    await fc.assert(property, { numRuns: 400 })
  })
})

/** A run of the janitor that keeps at most `maxSessions`. */
async function evictAll(store: SessionStore, maxSessions: number, seconds: number): Promise<void> {
  const { runner, keys, idleSeconds } = contextOf(store)
  const now = () => seconds
  const options = { maxSessions, idleSeconds, batchSize: 5, now }
  const retention = { runner, keys, ...options } as unknown as RetentionContext
  for await (const _ of evict(retention));
}
