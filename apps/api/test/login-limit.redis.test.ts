import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import type { FastifyInstance } from 'fastify'
import { expect, test } from 'vitest'
import type { LoginLimits } from '../src/plugins/login-limit.ts'
import { trustedProxies } from '../src/trust-proxy.ts'
import { appForThisTest } from './support.ts'

const server = redisOfThisFile()

/** Long, so that no window ends during a test. */
const WINDOW_SECONDS = 365 * 86_400
const LONG = { perUser: 0, perAddress: 0, windowSeconds: WINDOW_SECONDS }

const appWith = (loginLimits: LoginLimits, proxies?: string) =>
  appForThisTest(server.socket, {
    loginLimits,
    ...(proxies && { trustProxy: trustedProxies(proxies) }),
  })

interface Attempt {
  user: string
  from?: string
  forwardedFor?: string
}

const attempt = (app: FastifyInstance, { user, from = '192.0.2.1', forwardedFor }: Attempt) =>
  app.inject({
    method: 'POST',
    url: '/login',
    payload: { user },
    remoteAddress: from,
    headers: { ...(forwardedFor !== undefined && { 'x-forwarded-for': forwardedFor }) },
  })

const statuses = async (app: FastifyInstance, attempts: Attempt[]) => {
  const all = []
  for (const one of attempts) all.push((await attempt(app, one)).statusCode)
  return all
}

test('limits attempts per user, from any address and across processes', async () => {
  const limits = { ...LONG, perUser: 3 }
  const [one, other] = [await appWith(limits), await appWith(limits)]
  const ada = (from: string) => ({ user: 'ada', from })
  expect(await statuses(one, [ada('192.0.2.1'), ada('192.0.2.2')])).toEqual([200, 200])
  expect(await statuses(other, [ada('192.0.2.3'), ada('192.0.2.4')])).toEqual([200, 429])
  const refused = await attempt(one, ada('192.0.2.5'))
  expect(refused.statusCode).toBe(429)
  expect(refused.json()).toMatchObject({ code: 'API_TOO_MANY_REQUESTS', statusCode: 429 })
  const seconds = Number(refused.headers['retry-after'])
  expect(seconds).toBeGreaterThan(0)
  expect(seconds).toBeLessThanOrEqual(WINDOW_SECONDS)
  expect(refused.headers['set-cookie']).toBeUndefined()
  expect(await statuses(one, [{ user: 'eve' }])).toEqual([200])
})

test('limits attempts per address, for any user', async () => {
  const app = await appWith({ ...LONG, perAddress: 2 })
  const users = ['ada', 'bob', 'eve'].map((user) => ({ user }))
  expect(await statuses(app, users)).toEqual([200, 200, 429])
  expect(await statuses(app, [{ user: 'eve', from: '192.0.2.2' }])).toEqual([200])
  const v6 = ['2001:db8::1', '2001:db8:0:0:ffff::2', '2001:db8::3'].map((from) => ({
    user: 'eve',
    from,
  }))
  expect(await statuses(app, v6)).toEqual([200, 200, 429])
})

test('rejected attempts send nothing to Redis', async () => {
  const app = await appWith({ ...LONG, perAddress: 1 })
  expect(await statuses(app, [{ user: 'ada' }, { user: 'ada' }])).toEqual([200, 429])
  const keys = await server.redis.dbsize()
  const commands = async () =>
    Number(/total_commands_processed:(\d+)/.exec(await server.redis.info('stats'))?.[1])
  const before = await commands()
  const users = Array.from({ length: 100 }, (_, index) => ({ user: `user ${index}` }))
  expect(new Set(await statuses(app, users))).toEqual(new Set([429]))
  expect(await commands()).toBe(before + 1) // the previous INFO
  expect(await server.redis.dbsize()).toBe(keys)
})

/** Attempts with these values of X-Forwarded-For. */
const forwarded = (app: FastifyInstance, values: string[], from?: string) =>
  statuses(
    app,
    values.map((forwardedFor) => ({ user: 'ada', forwardedFor, ...(from && { from }) })),
  )

test('the limit per address includes guest sessions', async () => {
  const app = await appWith({ ...LONG, perAddress: 2 })
  const start = async () => (await app.inject({ method: 'POST', url: '/guest' })).statusCode
  expect([await start(), await start(), await start()]).toEqual([200, 200, 429])
})

test('only the entries of trusted proxies in X-Forwarded-For are used', async () => {
  const limits = { ...LONG, perAddress: 1 }
  const direct = await appWith(limits)
  expect(await forwarded(direct, ['203.0.113.1', '203.0.113.2'])).toEqual([200, 429])

  const behindOne = await appWith(limits, '1')
  // The client invented the first entry of the last one.
  const invented = ['203.0.113.1', '203.0.113.2', '203.0.113.9, 203.0.113.1']
  expect(await forwarded(behindOne, invented)).toEqual([200, 200, 429])

  const proxies = await appWith(limits, '192.0.2.0/24,::1')
  expect(await forwarded(proxies, ['203.0.113.3'])).toEqual([200])
  const untrusted = ['203.0.113.4', '203.0.113.5']
  expect(await forwarded(proxies, untrusted, '198.51.100.1')).toEqual([200, 429])
})
