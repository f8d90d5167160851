import { readFileSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { batching, type Sender } from '@onetrip/session-store'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import type { InjectOptions } from 'fastify'
import { expect, onTestFinished, test } from 'vitest'
import { appOn, bearer, login } from './support.ts'

const server = redisOfThisFile()

/** Sends batches to Redis, at most as many as `allow` says, and counts them. */
function gate() {
  let allowed = Number.POSITIVE_INFINITY
  let sent = 0
  let opened = Promise.withResolvers<void>()
  const sender: Sender = {
    name: 'gate',
    async send({ commands }) {
      const place = ++sent
      while (place > allowed) await opened.promise
      const calls = commands.map(([name, ...args]) => server.redis.call(name, ...args))
      return (await Promise.all(calls)) as Awaited<ReturnType<Sender['send']>>
    },
    close: async () => undefined,
  }
  return {
    sender: batching(sender),
    sent: () => sent,
    startCounting() {
      sent = 0
    },
    allow(batches: number) {
      allowed = batches
      opened.resolve()
      opened = Promise.withResolvers()
    },
  }
}

async function testbedFor(withLimits: boolean) {
  await server.redis.flushall()
  const { sender, ...counter } = gate()
  const clock = { now: Date.now() }
  const limits = { perUser: 100, perAddress: 100, windowSeconds: 60 }
  const app = await appOn(server.socket, {
    sender,
    clock: () => clock.now,
    maxSessionsPerUser: 2,
    deadlineMs: 120_000,
    ...(withLimits && { loginLimits: limits }),
  })
  onTestFinished(async () => {
    counter.allow(Number.POSITIVE_INFINITY)
    await app.close()
  })
  return { app, store: app.store, clock, counter, token: await login(app) }
}

type Testbed = Awaited<ReturnType<typeof testbedFor>>

const asUser =
  (method: 'GET' | 'PATCH' | 'POST' | 'DELETE', url: string, payload?: object) =>
  async ({ token }: Testbed): Promise<InjectOptions> => ({
    method,
    url,
    headers: bearer(token),
    ...(payload && { payload }),
  })

const logsIn: InjectOptions = { method: 'POST', url: '/login', payload: { user: 'grace' } }

/** The request of each row of the table, after what its condition needs. */
const requests: Record<string, (testbed: Testbed) => Promise<InjectOptions>> = {
  'POST /views': asUser('POST', '/views', { item: 'book' }),
  'POST /views the session has just ended: the view is undone': async (testbed) => {
    await testbed.store.logout(testbed.token)
    return await asUser('POST', '/views', { item: 'book' })(testbed)
  },
  'GET /me/views': asUser('GET', '/me/views'),
  'GET /items/popular': asUser('GET', '/items/popular'),
  'GET /me/data': asUser('GET', '/me/data'),
  'PATCH /me/data': asUser('PATCH', '/me/data', { cart: ['book'] }),
  'GET /me': asUser('GET', '/me'),
  'GET /me last seen more than ten seconds ago: it is updated': async (testbed) => {
    testbed.clock.now += 11_000
    return await asUser('GET', '/me')(testbed)
  },
  'POST /login login limits are off': async () => logsIn,
  'POST /login login limits are on: attempts are counted first': async () => logsIn,
  'POST /login also, the cookie of an old session of the user': async ({ token }) => ({
    ...logsIn,
    payload: { user: 'ada' },
    headers: { cookie: `__Host-onetrip=${token}` },
  }),
  'POST /login also, the cookie of another user': async ({ token }) => ({
    ...logsIn,
    headers: { cookie: `__Host-onetrip=${token}` },
  }),
  'POST /login more than the maximum of sessions: the oldest ends': async ({ app }) => {
    await login(app)
    return { ...logsIn, payload: { user: 'ada' } }
  },
  'POST /guest': async () => ({ method: 'POST', url: '/guest' }),
  'POST /guest login limits are on: attempts are counted first': async () => ({
    method: 'POST',
    url: '/guest',
  }),
  'POST /guest the request has a session': asUser('POST', '/guest'),
  'POST /logout': asUser('POST', '/logout'),
  'GET /recent': asUser('GET', '/recent'),
  'GET /me/sessions': asUser('GET', '/me/sessions'),
  'DELETE /me/sessions/{id}': async (testbed) => {
    const [id] = (await login(testbed.app)).split('.')
    return await asUser('DELETE', `/me/sessions/${id}`)(testbed)
  },
  'DELETE /me/sessions up to 100 sessions': async (testbed) => {
    await login(testbed.app)
    return await asUser('DELETE', '/me/sessions')(testbed)
  },
  'DELETE /me/sessions only the others, up to 100': async (testbed) => {
    await login(testbed.app)
    return await asUser('DELETE', '/me/sessions?others=true')(testbed)
  },
}

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
const [, section = ''] = readme.split('## Round trips')
const rows = [...section.matchAll(/^\| `(.+)` +\| (.*?) *\| (\d) +\| (\d?) +\|$/gm)].map(
  ([, request, condition, waits, afterwards]): [string, number, number] => [
    `${request} ${condition}`.trim(),
    Number(waits),
    Number(afterwards),
  ],
)

test('the README has a row for each of these requests', () => {
  expect(rows.map(([row]) => row)).toEqual(Object.keys(requests))
})

test.each(rows)('%s: %i round trips, and %i afterwards', async (row, waits, afterwards) => {
  const testbed = await testbedFor(/limits are on|also/.test(row))
  const { app, counter, store } = testbed
  const request = await requests[row]?.(testbed)
  await store.ping() // after what the condition has left to do
  counter.startCounting()

  counter.allow(waits - 1)
  let isAnswered = false
  const answer = app.inject(request ?? {}).finally(() => {
    isAnswered = true
  })
  await expect.poll(counter.sent).toBe(waits)
  await nextTurn()
  expect(isAnswered).toBe(false)

  counter.allow(waits)
  const { statusCode } = await answer
  expect(row.includes('just ended') ? [401] : [200, 204]).toContain(statusCode)
  counter.allow(Number.POSITIVE_INFINITY)
  await store.close() // waits for what is sent afterwards
  expect(counter.sent()).toBe(waits + afterwards)
})
