import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Command, memberScores, type Reply } from '../../session-store/src/command.ts'
import type { SessionStore, SessionStoreOptions } from '../../session-store/src/index.ts'
import { codeOf, idOf, newStore, tokens } from '../../session-store/test/fixture.ts'
import { Clock, withAnyClock } from '../../session-store/test/retention-fixture.ts'
import { issueToken, runWriteSession } from '../../session-store/test/write-session.ts'
import { Memory } from '../src/memory.ts'
import { memorySender } from '../src/test-store.ts'

const server = redisOfThisFile()

const step = fc.record({
  kind: fc.constantFrom(
    ...(['login', 'login', 'from', 'guest', 'view', 'view', 'once', 'patch', 'patch'] as const),
    ...(['touch', 'read', 'lists', 'sessions', 'logout', 'revoke', 'everywhere', 'end'] as const),
    ...(['attempts', 'janitor', 'orphan'] as const),
  ),
  user: fc.constantFrom('ada', 'bob', '__proto__'),
  session: fc.nat({ max: 9 }),
  other: fc.nat({ max: 9 }),
  item: fc.constantFrom('book', 'pen', 'überraschung', '\u{e000}', '🦊', 'x 1', 'x 2', 'x 3'),
  fields: fc.dictionary(
    fc.constantFrom('cart', 'theme', '__proto__'),
    fc.option(fc.jsonValue(), { nil: undefined }),
    { noNullPrototype: true },
  ),
  number: fc.nat({ max: 4 }),
  pass: fc.constantFrom(0.001, 0.001, 0.001, 30, 70, 600, 90_000),
})
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never

/** A store, and the tokens of all sessions that it has started. */
interface World {
  readonly store: SessionStore
  readonly issued: string[]
}

async function play({ store, issued }: World, step: Step): Promise<unknown> {
  const { kind, user, item, fields, number } = step
  const token = issued[step.session % issued.length] ?? ''
  const other = issued[step.other % issued.length] ?? ''
  const start = async (starting: Promise<{ token: string }>) =>
    void issued.push((await starting).token)
  const plays: Record<Step['kind'], () => Promise<unknown>> = {
    login: () => start(store.login(user)),
    from: () => start(store.login(user, { from: other })),
    guest: () => start(store.loginGuest()),
    view: () => store.recordView(token, item, { data: true }),
    once: () => store.recordView(token, item, { idempotencyKey: `${number}` }),
    patch: () => store.patch(token, fields, number > 2 ? { ifVersion: number } : {}),
    touch: () => store.touch(token, 30 * number),
    read: () => store.checkToken(token, { data: true }),
    lists: async () => [
      await store.popularItems(number + 1),
      await store.recentSessions(number + 1),
      await store.viewedItems(token),
    ],
    sessions: async () => (await store.userSessions(token)).sessions.map((session) => [session]),
    logout: () => store.logout(token),
    revoke: () => store.revokeSession(token, idOf(other)),
    everywhere: () => store.logoutEverywhere(token),
    end: () => store.endUserSessions(user),
    attempts: () => store.countAttempts([user, item], 60),
    async janitor() {
      const limits = { maxSessions: 2 * number + 2, keptItems: number, batchSize: number + 1 }
      const janitor = store.janitor({ ...limits, sweepEverySeconds: 60, sweepKeys: true })
      const { durationMs: _, ...run } = await janitor.runOnce()
      return run
    },
    async orphan() {
      const started = issueToken(store)
      issued.push(started)
      await runWriteSession(store, started, user, item)
    },
  }
  return await plays[kind]().catch(codeOf)
}

/** All keys and their values. */
async function contentsOf(store: SessionStore): Promise<unknown[]> {
  const replyTo = (command: Command) =>
    store.run({ commands: [command], readOnly: true, read: ([reply]) => reply as Reply })
  const [, keys] = (await replyTo(['SCAN', '0', 'COUNT', 10_000])) as [string, string[]]
  return await Promise.all(
    keys.map(async (key) => {
      const name = key.replace(/^once:.*/, 'once:') // the rest is a hash of an id
      const type = await replyTo(['TYPE', key])
      if (type === 'string') return [name, await replyTo(['GET', key])]
      if (type === 'hash') return [name, ((await replyTo(['HGETALL', key])) as string[]).toSorted()]
      return [name, memberScores(await replyTo(['ZRANGE', key, 0, -1, 'WITHSCORES'])).toSorted()]
    }),
  )
}

/** The fields of a hash have no order. */
const inOrder = (_: string, value: unknown) => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).toSorted())
}

/** The same texts for both worlds: ids are random, so each becomes its number. */
function named({ issued }: World, result: unknown): string[] {
  const parts = Array.isArray(result) ? result : [result]
  const texts = parts.map((part) => {
    let text = `${JSON.stringify(part, inOrder)}`
    for (const [index, token] of issued.entries()) text = text.replaceAll(idOf(token), `<${index}>`)
    return text
  })
  return texts.toSorted()
}

test('a store in memory gives the same results as Redis', async () => {
  const clock = new Clock()
  const options = {
    idleSeconds: 1_000,
    maxSessionsPerUser: 3,
    tokens: { ...tokens, clock: () => clock.ms },
  }
  const storeWith = (own: Partial<SessionStoreOptions>) =>
    withAnyClock(newStore({ ...options, ...own }))
  const redis = storeWith({ redis: `unix://${server.socket}` })
  await redis.ready()
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60, size: 'max' }), async (steps) => {
      await server.redis.flushall()
      clock.ms = new Clock().ms
      const real: World = { store: redis, issued: [] }
      const store = storeWith({ sender: memorySender(new Memory(Date.now)).sender })
      const memory: World = { store, issued: [] }
      for (const step of steps) {
        clock.pass(step.pass)
        const [result, expected] = [await play(memory, step), await play(real, step)]
        expect(named(memory, result), step.kind).toEqual(named(real, expected))
      }
      expect(await memory.store.popularItems(100)).toEqual(await real.store.popularItems(100))
      const [contents, expected] = [await contentsOf(memory.store), await contentsOf(real.store)]
      expect(named(memory, contents)).toEqual(named(real, expected))
    }),
    { numRuns: 100 },
  )
})
