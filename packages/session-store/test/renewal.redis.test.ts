import { expect, test } from 'vitest'
import { articleKeys as keys } from '../src/index.ts'
import { oldestSessions } from '../src/retention/evict.ts'
import { checkToken, type Session, statesOf } from '../src/sessions/check.ts'
import { login } from '../src/sessions/log-in.ts'
import { endSessions } from '../src/sessions/log-out.ts'
import { writeSession } from '../src/views/record.ts'
import { type Caller, interleavings, Running } from './interleavings.ts'
import { retentionServer } from './retention-fixture.ts'

const server = retentionServer()

const id = 'a-session'
const now = 100_000
const settledBefore = 40
const whole = { user: 'ada', lastSeenAt: now }

const begun = writeSession(keys, { id, user: 'ada' }, 1_000)
const renewed = writeSession(keys, { id, user: 'ada', item: 'book' }, now)
const loggedIn = login(keys, { id, user: 'ada' }, now)

/** Reads the oldest session and ends it if it is beyond the limits. */
function* evict(keep: number): Caller {
  const oldest = oldestSessions(keys.recent(id), 1)
  const { sessions } = (yield oldest) as ReturnType<(typeof oldest)['read']>
  const seen = sessions.map(([, lastSeen]) => lastSeen)
  const endIf = { settledBefore, oldest: { idleBefore: 50, keep, seen } }
  if (sessions.length > 0) yield endSessions(keys, [id], endIf)
}

function* sweepLogins(): Caller {
  const [state] = (yield statesOf(keys, [id])) as (Session | undefined)[]
  if (state?.lastSeenAt === 0) yield endSessions(keys, [id], { settledBefore })
}

function* sweepSeen(): Caller {
  const [state] = (yield statesOf(keys, [id])) as (Session | undefined)[]
  if (state === undefined) yield endSessions(keys, [id], { settledBefore })
}

/** The state of the session after each possible order of the operation and the other caller. */
async function* orders({ operation = renewed, idle = true }, other: () => Caller, steps: number) {
  for (const order of interleavings(operation.commands.length, steps)) {
    await server.redis.flushall()
    if (idle) await server.run(begun)
    const callers = [new Running(server.redis, [operation].values() as unknown as Caller)]
    callers.push(new Running(server.redis, other()))
    for (const which of order) if (!callers[which]?.done) await callers[which]?.step()
    yield { order: order.join(''), session: await server.run(checkToken(keys, id)) }
  }
}

test.each([
  ['the eviction of idle sessions', {}, () => evict(10), 3],
  ['the sweep of logins', {}, sweepLogins, 3],
  ['the sweep of last-seen times', {}, sweepSeen, 3],
  ['the sweep of logins, after the session had ended', { idle: false }, sweepLogins, 3],
  ['the sweep of last-seen times, after the session had ended', { idle: false }, sweepSeen, 3],
])('`writeSession` never loses the session to %s', async (_, begun, other, steps) => {
  let played = 0
  for await (const { order, session } of orders(begun, other, steps)) {
    expect(session, order).toEqual(whole)
    played++
  }
  expect(played).toBeGreaterThan(20)
})

test('with `login`, the maximum ends a session completely or not at all', async () => {
  const begun = { operation: loggedIn, idle: false }
  for await (const { order } of orders(begun, () => evict(0), 3)) {
    const user = await server.redis.hget(keys.login(id), id)
    const seen = await server.redis.zscore(keys.recent(id), id)
    expect([user === null, seen === null], order).toSatisfy(([a, b]) => a === b)
  }
})

test('the sweep removes what a renewal leaves of a session that was ended on purpose', async () => {
  for (const [other, steps] of [
    [() => evict(0), 3],
    [() => [endSessions(keys, [id])].values() as unknown as Caller, 5],
  ] as const) {
    for await (const { order, session } of orders({}, other, steps)) {
      await server.run(endSessions(keys, [id], { settledBefore: now / 1000 + 1 }))
      const left = new Set(await server.redis.keys('*'))
      for (const key of [keys.login(id), keys.recent(id)]) {
        expect(left.has(key), order).toBe(session?.lastSeenAt === now)
      }
      if (session?.lastSeenAt !== now) expect(left).not.toContain(keys.viewed(id))
    }
  }
})
