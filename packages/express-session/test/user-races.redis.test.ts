import type { Request } from 'express'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type CommandRunner, ExpressSessionStore } from '../src/express.ts'
import { FastifySessionStore } from '../src/fastify.ts'
import { CommandsInTurn } from './commands-in-turn.ts'
import { sessionServer } from './fixture.ts'

const server = sessionServer()

const MAXIMUM = 2
const userOf = ({ user }: Record<string, unknown>) => user as string | undefined
const adapters = { userOf, maxSessionsPerUser: MAXIMUM }
const express = (store: CommandRunner) => new ExpressSessionStore(store, adapters)
const fastify = (store: CommandRunner) => new FastifySessionStore(store, adapters)
const cookie = {}
/** The sessions of each test: those of ada, one of bob, and one of nobody. */
const sessions = { a: 'ada', b: 'ada', c: 'bob', d: undefined } as const
type Id = keyof typeof sessions
const ids = Object.keys(sessions) as Id[]

/** A store with these sessions, whose entries in the lists are old. */
async function begin() {
  const store = await server.start()
  const fill = async () => {
    await server.redis.flushall()
    for (const id of ids) {
      const user = sessions[id]
      await express(store).set(id, sessionOf(user))
      if (user) await server.redis.zincrby(listOf(user), -600_000, id)
    }
  }
  return { store, fill }
}

const listOf = (user: string) => `express:user:${user}`
const sessionOf = (user: string | undefined) => ({ cookie, ...(user && { user }) }) as never

/** Loads a session as express-session does, and returns a function that saves it with changes. */
async function loaded(store: CommandRunner, id: Id) {
  const found = await express(store).get(id)
  return async (own: CommandRunner, changes: Record<string, unknown>) => {
    if (!found) return
    const adapter = express(own)
    const request = { sessionID: id, sessionStore: adapter } as unknown as Request
    const session = adapter.createSession(request, structuredClone(found))
    await adapter.set(id, Object.assign(session, changes))
  }
}

/** Each session in Redis: its user, the user in its data, and whether it is in the user's list. */
async function stateOf() {
  const all = []
  for (const id of [...ids, 'new', 'newer']) {
    const { '': user = '', user: text, ...fields } = await server.redis.hgetall(`express:${id}`)
    const isListed = user === '' || (await server.redis.zscore(listOf(user), id)) !== null
    const exists = Object.keys(fields).length > 0
    all.push({ id, exists, user, data: JSON.parse(text ?? '""'), isListed })
  }
  return all
}

/** What holds at any time. */
async function checkLists(): Promise<void> {
  for (const { id, user, isListed } of await stateOf()) {
    expect(isListed, `${id} of ${user} is in the list`).toBe(true)
  }
}

/** What holds after any calls. */
async function checkState(): Promise<void> {
  await checkLists()
  for (const { id, user, data } of await stateOf()) expect(data, id).toBe(user)
}

/** Each ends the session `a` of ada. */
const ends: [string, (store: CommandRunner) => Promise<unknown>][] = [
  ['endUserSessions', (store) => express(store).endUserSessions('ada')],
  ['endOthers', (store) => express(store).endOthers('ada', 'none')],
  ['destroy', (store) => express(store).destroy('a')],
  [
    'the maximum of a user',
    async (store) => {
      for (const id of ['new', 'newer']) await fastify(store).set(id, sessionOf('ada'))
    },
  ],
]

/** Each is a save of a request that has loaded the session `a`. */
const saves: [
  string,
  (store: CommandRunner) => Promise<(own: CommandRunner) => Promise<unknown>>,
][] = [
  ['@fastify/session', async () => (own) => fastify(own).set('a', sessionOf('ada'))],
  [
    'express-session',
    async (store) => {
      const save = await loaded(store, 'a')
      return (own) => save(own, { theme: 'dark' })
    },
  ],
]

test.each(ends)(
  'a save at every point of %s, and the reverse: the session stays gone',
  async (_, end) => {
    const { store, fill } = await begin()
    for (const [name, load] of saves) {
      for (const first of [0, 1]) {
        for (let place = 0, isPast = false; !isPast; place++) {
          await fill()
          const save = await load(store)
          const inTurn = new CommandsInTurn(server.redis)
          const [one, other] = [inTurn.storeFor(0), inTurn.storeFor(1)]
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
          const [a] = await stateOf()
          expect(a?.exists, `${name}, ${first}, ${place}`).toBe(false)
          await save(store)
          expect((await stateOf())[0]?.exists, `${name}, later`).toBe(false)
          await checkState()
        }
      }
    }
  },
)

const logins: typeof saves = [
  ['@fastify/session', async () => (own) => fastify(own).set('d', sessionOf('ada'))],
  [
    'express-session',
    async (store) => {
      const save = await loaded(store, 'd')
      return (own) => save(own, { user: 'ada' })
    },
  ],
  ['a new session', async () => (own) => fastify(own).set('new', sessionOf('ada'))],
  [
    'a session from before userOf',
    async (store) => {
      await new ExpressSessionStore(store).set('d', sessionOf('ada'))
      return (own) => express(own).get('d')
    },
  ],
]

test.each(logins)('a login is in the list before it is in the session: %s', async (name, load) => {
  const { store, fill } = await begin()
  await fill()
  const inTurn = new CommandsInTurn(server.redis)
  const login = await load(store)
  await inTurn.finish([login(inTurn.storeFor(0))], async () => {
    await checkLists()
    return 0
  })
  await checkLists()
  const sessions = await express(store).ofUser('ada')
  expect(sessions.map(({ id }) => id)).toContain(name.includes('new') ? 'new' : 'd')
})

test('saves, logins, logouts and ends in any order: each session is in the list of its user, or stays gone', async () => {
  const { store, fill } = await begin()
  const action = fc.record({
    kind: fc.constantFrom('put', 'save', 'save', 'get', 'endUser', 'destroy', 'list'),
    id: fc.constantFrom(...ids),
    user: fc.constantFrom('ada', 'bob', undefined),
  })
  const property = fc.asyncProperty(
    fc.array(action, { minLength: 2, maxLength: 6 }),
    fc.infiniteStream(fc.nat(50)),
    async (actions, order) => {
      await fill()
      const saves = await Promise.all(actions.map(({ id }) => loaded(store, id)))
      const inTurn = new CommandsInTurn(server.redis)
      const calls = actions.map(async ({ kind, id, user }, index) => {
        const mine = inTurn.storeFor(index)
        if (kind === 'put') await fastify(mine).set(id, sessionOf(user))
        else if (kind === 'save') await saves[index]?.(mine, { user, theme: index })
        else if (kind === 'get') await express(mine).get(id)
        else if (kind === 'endUser') await express(mine).endUserSessions(user ?? 'ada')
        else if (kind === 'destroy') await express(mine).destroy(id)
        else await express(mine).ofUser(user ?? 'ada')
      })
      await inTurn.finish(calls, (callers) => {
        const [choice = 0] = [...order.take(1)]
        return choice % callers.length
      })
      await checkState()
      for (const user of ['ada', 'bob']) await express(store).endUserSessions(user)
      for (const { user } of await stateOf()) expect(user).toBe('')
    },
  )
  await fc.assert(property, { numRuns: 400 })
})
