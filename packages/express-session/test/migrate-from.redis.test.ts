import { RedisStore } from 'connect-redis'
import session from 'express-session'
import fc from 'fast-check'
import { createClient } from 'redis'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type CommandRunner, ExpressSessionStore } from '../src/express.ts'
import { FastifySessionStore } from '../src/fastify.ts'
import { MOVE } from '../src/scripts.ts'
import { CommandsInTurn } from './commands-in-turn.ts'
import { ended, justBefore, sessionServer } from './fixture.ts'

const server = sessionServer()

/** A store, and connect-redis with its client of node-redis. */
async function bothForThisTest(prefix?: string) {
  const store = await server.start()
  const client = createClient({ socket: { path: server.socket, tls: false } })
  await client.connect()
  onTestFinished(() => client.destroy())
  return { store, old: new RedisStore({ client, ...(prefix && { prefix }) }) }
}

/** Saves a session in connect-redis. */
async function make(old: RedisStore, id: string, fields: object, seconds?: number): Promise<void> {
  const cookie = new session.Cookie()
  if (seconds !== undefined) cookie.maxAge = 1000 * seconds
  await old.set(id, { ...fields, cookie } as unknown as session.SessionData)
}

const userOf = ({ user }: Record<string, unknown>) => user as string | undefined
const options = { migrateFrom: 'sess:', userOf }

describe.each([
  ['express-session', ExpressSessionStore],
  ['@fastify/session', FastifySessionStore],
] as const)('migrateFrom, %s', (_, Store) => {
  test('moves a session when it is first read, with its lifetime and its user', async () => {
    const { store, old } = await bothForThisTest()
    const adapter = new Store(store, options)
    await adapter.set('short', { cookie: {}, user: 'ada' } as never) // its list gets a longer life
    await make(old, 'one', { user: 'ada', cart: [], ratio: 0.1 + 0.2 }, 90 * 86_400)
    const before = await old.get('one')
    const found = await Promise.all(Array.from({ length: 20 }, () => adapter.get('one')))
    expect(found).toEqual(found.map(() => before))
    expect(await old.length()).toBe(0)
    expect(await server.redis.ttl('express:one')).toBeGreaterThan(89 * 86_400)
    expect(await server.redis.ttl('express:user:ada')).toBeGreaterThan(89 * 86_400)
    expect((await adapter.ofUser('ada')).map(({ id }) => id).sort()).toEqual(['one', 'short'])
    expect(await adapter.get('two')).toBe(null)
    // Without the option, as after the migration.
    expect(await new Store(store).get('one')).toEqual(before)
  })

  test('a session that was destroyed meanwhile does not move, even if the old key is back', async () => {
    const { store } = await bothForThisTest()
    const text = '{"cookie":{},"user":"ada"}'
    await server.redis.set('sess:one', text)
    const logout = async () => {
      await new Store(store, options).destroy('one')
      await server.redis.set('sess:one', text)
    }
    expect(await new Store(justBefore(MOVE, store, logout), options).get('one')).toBe(null)
    expect(await server.redis.hgetall('express:one')).toEqual(ended)
  })

  test('a key that does not expire moves with the usual lifetime', async () => {
    const { store } = await bothForThisTest()
    await server.redis.set('old:one', '{"cookie":{},"user":"ada"}')
    const adapter = new Store(store, { migrateFrom: 'old:', ttl: 100 })
    expect(await adapter.get('one')).toEqual({ cookie: {}, user: 'ada' })
    expect(await server.redis.ttl('express:one')).toBeLessThanOrEqual(100)
  })

  test('destroying a session destroys both', async () => {
    const { store, old } = await bothForThisTest()
    const adapter = new Store(store, options)
    await make(old, 'one', { user: 'ada' })
    await adapter.destroy('one')
    expect(await server.dump()).toEqual({ 'express:one': ended })
    await adapter.set('one', { cookie: {} } as never) // a late save
    expect(await adapter.get('one')).toBe(null)
  })

  test.each([
    ['{"cookie":{}', 'ONETRIP_UNREADABLE_DATA', 'a session of connect-redis is not JSON'],
    ['null', 'ONETRIP_UNREADABLE_DATA', 'a session of connect-redis is not an object'],
    ['{"cookie":{},"user":42}', 'ONETRIP_WRONG_TYPE', 'the user of a session must be a string'],
    ['{"cookie":{},"":1}', 'ONETRIP_INVALID_INPUT', 'a field of a session needs a name'],
  ])('%s is an error, and nothing is lost', async (text, code, message) => {
    const { store } = await bothForThisTest()
    await server.redis.set('sess:one', text)
    const adapter = new Store(store, options)
    await expect(adapter.get('one')).rejects.toMatchObject({ code, message })
    expect(await server.dump()).toEqual({ 'sess:one': text })
    await server.redis.del('sess:one')
    await server.redis.hset('sess:one', 'user', 'ada') // not a key of connect-redis
    await expect(adapter.get('one')).rejects.toMatchObject({ code: 'ONETRIP_REFUSED' })
    expect(await server.dump()).toEqual({ 'sess:one': { user: 'ada' } })
  })
})

type Fields = Record<string, unknown>
const cookie = {}

/** What clients know about their sessions. */
interface Expected {
  fields: Fields
  /** `unknown`: a logout failed, so the session may have ended. */
  is: 'alive' | 'unknown' | 'ended'
}

const killed = new Error('killed')

/** A process that is killed before it sends another command than these. */
function killedAfter(commands: number, store: CommandRunner): CommandRunner {
  let left = commands
  return {
    run: async (operation) => {
      if (left-- <= 0) throw killed
      return await store.run(operation)
    },
  }
}

test('new processes lose no change and revive no session, even if they are killed', async () => {
  const store = await server.start()
  const oldStep = fc.record({ name: fc.constantFrom('save', 'logout', 'login'), pick: fc.nat(2) })
  const newStep = fc.record({
    name: fc.constantFrom('read', 'save', 'logout', 'login', 'end of all sessions of the user'),
    pick: fc.nat(),
    field: fc.constantFrom('a', 'b'),
    kill: fc.option(fc.nat(6), { freq: 2 }),
  })
  const steps = [
    fc.array(oldStep, { maxLength: 8 }),
    fc.array(newStep, { minLength: 1, maxLength: 25 }),
  ] as const
  let value = 0
  const property = fc.asyncProperty(...steps, async (before, after) => {
    await server.redis.flushall()
    const sessions: Expected[] = []
    const create = (fields: Fields) => sessions.push({ fields, is: 'alive' }) - 1
    const saveOld = async (id: number) =>
      await server.redis.set(`sess:${id}`, JSON.stringify(sessions[id]?.fields), 'EX', 3_600)
    for (const a of [1, 2, 3]) await saveOld(create({ cookie, user: 'ada', a }))
    for (const { name, pick } of before) {
      const found = sessions[pick]
      if (found?.is !== 'alive') continue
      if (name === 'save') found.fields = { ...found.fields, a: value++ }
      else {
        found.is = 'ended'
        await server.redis.del(`sess:${pick}`)
      }
      if (name === 'save') await saveOld(pick)
      if (name === 'login') await saveOld(create({ ...found.fields, a: value++ }))
    }
    const check = (id: number, found: unknown) => {
      const session = sessions[id] as Expected
      if (found) {
        expect(session.is).not.toBe('ended')
        expect(found).toEqual(session.fields)
        session.is = 'alive'
      } else {
        expect(session.is).not.toBe('alive')
        session.is = 'ended'
      }
      return found as session.SessionData | null
    }
    for (const { name, pick, field, kill } of after) {
      const id = pick % sessions.length
      const current = sessions[id] as Expected
      const own = kill === null ? store : killedAfter(kill, store)
      const adapter = new ExpressSessionStore(own, options)
      const act = async () => {
        const found = check(id, (await adapter.get(String(id))) ?? null)
        if (name.startsWith('end')) {
          const listed = await new ExpressSessionStore(store, options).ofUser('ada')
          const all = listed.map((entry) => sessions[Number(entry.id)])
          for (const session of all) if (session) session.is = 'unknown'
          await adapter.endUserSessions('ada')
          for (const session of all) if (session) session.is = 'ended'
        }
        if (!found || name === 'read' || name.startsWith('end')) return
        if (name === 'save') {
          const request = { sessionID: String(id), sessionStore: adapter } as never
          const loaded = adapter.createSession(request, structuredClone(found))
          Object.assign(loaded, { [field]: value++ })
          await adapter.set(String(id), loaded)
          current.fields = JSON.parse(JSON.stringify(loaded))
          return
        }
        current.is = 'unknown'
        await adapter.destroy(String(id))
        current.is = 'ended'
        const fields = { ...current.fields, [field]: value++ }
        if (name === 'login') {
          const next = create(fields)
          await new ExpressSessionStore(store, options).set(String(next), fields as never)
        }
      }
      await act().catch((error: unknown) => {
        if (error !== killed) throw error
      })
    }
    for (const id of [...sessions.keys(), ...sessions.keys()]) {
      check(id, (await new ExpressSessionStore(store, options).get(String(id))) ?? null)
    }
  })
  await fc.assert(property, { numRuns: 300 })
})

test('parallel first requests in any order: all changes are kept, and a logout is final', async () => {
  const store = await server.start()
  const anyOrder = fc.infiniteStream(fc.nat(5))
  const property = fc.asyncProperty(anyOrder, fc.boolean(), async (order, logsOut) => {
    await server.redis.flushall()
    const fields = { cookie, user: 'ada', a: 0 }
    await server.redis.set('sess:one', JSON.stringify(fields), 'EX', 3_600)
    const inTurn = new CommandsInTurn(server.redis)
    const request = async (field: string, caller: number) => {
      const adapter = new ExpressSessionStore(inTurn.storeFor(caller), options)
      const found = await adapter.get('one')
      if (!found) return expect(logsOut).toBe(true)
      expect(found).toMatchObject({ user: 'ada', a: 0 })
      const request = { sessionID: 'one', sessionStore: adapter } as never
      const loaded = adapter.createSession(request, structuredClone(found))
      await adapter.set('one', Object.assign(loaded, { [field]: 1 }))
    }
    const logout = async () =>
      await new ExpressSessionStore(inTurn.storeFor(2), options).destroy('one')
    const calls = [request('b', 0), request('c', 1), ...(logsOut ? [logout()] : [])]
    await inTurn.finish(calls, (callers) => {
      const [choice = 0] = [...order.take(1)]
      return choice % callers.length
    })
    const found = await new ExpressSessionStore(store, options).get('one')
    if (logsOut) expect(found).toBe(null)
    else expect(found).toMatchObject({ ...fields, cookie: expect.anything(), b: 1, c: 1 })
    expect(await server.redis.exists('sess:one')).toBe(0)
  })
  await fc.assert(property, { numRuns: 300 })
})
