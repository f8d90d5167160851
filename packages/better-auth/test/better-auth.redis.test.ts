import { readFileSync } from 'node:fs'
import { SessionStore, type SessionStoreOptions } from '@onetrip/session-store'
import { redisForThisTest, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { betterAuth } from 'better-auth'
import { memoryAdapter } from 'better-auth/adapters/memory'
import * as oldest from 'better-auth-1.7.0'
import { memoryAdapter as oldestAdapter } from 'better-auth-1.7.0/adapters/memory'
import { Redis } from 'ioredis'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { betterAuthStorage } from '../src/index.ts'

const server = redisOfThisFile()
const secret = 'a-secret-for-tests-a-secret-for-tests'

async function storeForThisTest(
  { socket }: { socket: string } = server,
  options: Partial<SessionStoreOptions> = {},
) {
  const redis = `unix://${socket}`
  const janitor = 'elsewhere'
  const store = new SessionStore({ redis, tokens: { secrets: [secret] }, janitor, ...options })
  onTestFinished(() => store.close())
  await store.ready()
  return store
}

type Runner = Pick<SessionStore, 'run'>
const options = {
  baseURL: 'http://localhost:3000',
  secret,
  emailAndPassword: {
    enabled: true,
    password: {
      hash: async (password: string) => password,
      verify: async ({ hash, password }: { hash: string; password: string }) => hash === password,
    },
  },
  session: { updateAge: 0 }, // each request extends its session
  logger: { disabled: true },
}
const on = (store: Runner) => ({ ...options, secondaryStorage: betterAuthStorage(store) })
const tables = () => ({ user: [], session: [], account: [], verification: [] })

/** The tested versions of better-auth. */
const versions: [string, (store: Runner) => { handler(request: Request): Promise<Response> }][] = [
  [
    'better-auth 1.7.25',
    (store) => betterAuth({ ...on(store), database: memoryAdapter(tables()) }),
  ],
  [
    'better-auth 1.7.0',
    (store) => oldest.betterAuth({ ...on(store), database: oldestAdapter(tables()) }),
  ],
]

/** Requests to an application. */
function clientOf({ handler }: ReturnType<(typeof versions)[number][1]>) {
  async function ask(path: string, cookie = '', payload?: object) {
    const headers = { cookie, origin: options.baseURL, 'content-type': 'application/json' }
    const body = payload && JSON.stringify(payload)
    const init = { method: payload ? 'POST' : 'GET', headers, ...(body && { body }) }
    const response = await handler(new Request(`${options.baseURL}/api/auth/${path}`, init))
    expect(response.status).toBe(200)
    const cookies = response.headers.getSetCookie().map((text) => text.split(';')[0])
    // biome-ignore lint/suspicious/noExplicitAny: what better-auth answers
    return { body: (await response.json()) as any, cookie: cookies.join('; ') }
  }
  const ada = { email: 'ada@shop.example', password: 'lovelace', name: 'Ada' }
  return {
    ask,
    signUp: () => ask('sign-up/email', '', ada),
    signIn: () => ask('sign-in/email', '', ada),
    session: async (cookie: string) => (await ask('get-session', cookie)).body,
    signOut: (cookie: string) => ask('sign-out', cookie, {}),
  }
}

/** A store that can hold back writes of values. */
function holding(store: Runner) {
  let hold: { arrived: () => void; go: Promise<void> } | undefined
  return {
    run: (async (operation) => {
      const held = operation.commands[0]?.[0] === 'EVAL' ? hold : undefined
      held?.arrived()
      await held?.go
      return await store.run(operation)
    }) as Runner['run'],
    /** Until `release` is called. */
    holdWrites() {
      const [arrived, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      hold = { arrived: arrived.resolve, go: go.promise }
      const release = () => {
        hold = undefined
        go.resolve()
      }
      return { arrived: arrived.promise, release }
    },
  }
}

describe.each(versions)('%s', (_, start) => {
  test('a session that is revoked while its login writes it does not exist', async () => {
    const store = holding(await storeForThisTest())
    const { ask, signUp, signIn, session } = clientOf(start(store))
    const { cookie } = await signUp()
    const { arrived, release } = store.holdWrites()
    const late = signIn()
    await arrived
    // As "revoke other sessions", which skips a session that it cannot read yet.
    const { user, session: own } = (await ask('get-session?disableRefresh=true', cookie)).body
    const storage = betterAuthStorage(await storeForThisTest())
    const listed = JSON.parse(`${await storage.get(`active-sessions-${user.id}`)}`)
    for (const { token } of listed) if (token !== own.token) await storage.delete(token)
    release()
    expect(await session((await late).cookie)).toBe(null)
  })

  test('a session lives as long as better-auth says, not as long as the store', async () => {
    const store = await storeForThisTest(server, { idleSeconds: 60 })
    const { signUp, session } = clientOf(start(store))
    const { cookie } = await signUp()
    const { token, userId } = (await session(cookie)).session
    for (const key of [token, `active-sessions-${userId}`]) {
      expect(await server.redis.ttl(`better-auth:${key}`)).toBeGreaterThan(7 * 86_400 - 60)
    }
  })
})

const token = 'a1B2'.repeat(8)
const saved = (userId = 'ada') => JSON.stringify({ session: { token, userId } })

test.each(['verification:x', 'x'.repeat(32), 'ä {b}\n'])(
  'the key %j that is no session can be set again after its end',
  async (key) => {
    const storage = betterAuthStorage(await storeForThisTest(), 'auth:')
    expect(await storage.get(key)).toBe(null)
    await storage.set(key, 'one')
    await storage.set(key, '{"session":{}}', 0.5)
    expect(await server.redis.pttl(`auth:${key}`)).toBeLessThanOrEqual(500)
    expect(await storage.getAndDelete(key)).toBe('{"session":{}}')
    expect(await storage.getAndDelete(key)).toBe(null)
    await storage.set(key, 'two', 60)
    if (key.length < 32) await storage.delete(key)
    expect(await storage.get(key)).toBe(key.length < 32 ? null : 'two')
    await storage.set(key, 'three')
    expect(await storage.get(key)).toBe('three')
    expect(await server.redis.ttl(`auth:${key}`)).toBeGreaterThan(300_000_000)
  },
)

test('a counter ends with its first window', async () => {
  const storage = betterAuthStorage(await storeForThisTest())
  expect(await storage.increment('limit', 60)).toBe(1)
  await server.redis.expire('better-auth:limit', 10)
  expect(await storage.increment('limit', 60)).toBe(2)
  expect(await server.redis.ttl('better-auth:limit')).toBeLessThanOrEqual(10)
})

test('an ended session stays ended, and leaves the list; expired ones leave it, too', async () => {
  const storage = betterAuthStorage(await storeForThisTest())
  const list = async () => JSON.parse(`${await storage.get('active-sessions-ada')}`)
  await storage.set(token, saved(), 600)
  await storage.set(token, saved(), 60) // the list lives on
  expect(await server.redis.ttl('better-auth:active-sessions-ada')).toBeGreaterThan(590)
  expect(await list()).toEqual([{ token, expiresAt: expect.closeTo(Date.now() + 60_000, -5) }])
  await storage.set('active-sessions-ada', '[]', 60)
  await storage.delete('active-sessions-ada')
  expect(await list()).toHaveLength(1)
  for (let n = 0; n < 2; n++) {
    await storage.delete(token)
    await storage.set(token, saved(), 60)
    expect(await storage.get(token)).toBe(null)
    expect(await server.redis.ttl(`better-auth:${token}`)).toBeGreaterThan(290)
  }
  const now = Date.now()
  vi.spyOn(Date, 'now').mockReturnValue(now + 61_000)
  onTestFinished(() => void vi.restoreAllMocks())
  expect(await list()).toBe(null)
})

test('refuses anything but a session store, and an empty prefix', async () => {
  expect(() => betterAuthStorage({} as never)).toThrow('the storage needs a session store')
  const store = await storeForThisTest()
  expect(() => betterAuthStorage(store, '')).toThrow('prefix must be a text')
  expect(() => betterAuthStorage(store, {} as never)).toThrow('prefix must be a text')
})

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')

test('the permissions of the README are enough', async () => {
  const redis = await redisForThisTest()
  const admin = new Redis(redis.socket)
  onTestFinished(() => admin.disconnect())
  const ofStore = '&login:* ~login:* ~recent:* ~viewed:* +type +hget +publish +info +ping +hello'
  const [, own = ''] = /^ {2}`(~better-auth:\* .*)`$/m.exec(readme) ?? []
  const rules = `${ofStore} +client|setinfo ${own}`.split(' ')
  await admin.call('ACL', 'SETUSER', 'default', 'reset', 'on', 'nopass', ...rules)
  const store = await storeForThisTest(redis)
  for (const [, start] of versions) {
    const { ask, signUp, session, signOut } = clientOf(start(store))
    const { cookie } = await signUp()
    expect((await ask('list-sessions', cookie)).body).toHaveLength(1)
    await signOut(cookie)
    expect(await session(cookie)).toBe(null)
  }
  const storage = betterAuthStorage(store)
  await storage.set('verification:x', 'y', 60)
  await storage.delete('verification:x')
  expect(await storage.getAndDelete('verification:x')).toBe(null)
  expect(await storage.increment('limit', 60)).toBe(1)
})

test('the program of the README works', async () => {
  vi.stubEnv('REDIS_URL', `unix://${server.socket}`)
  vi.stubEnv('SESSION_SECRET', secret)
  onTestFinished(() => void vi.unstubAllEnvs())
  const example = new URL('../examples/auth.ts', import.meta.url)
  expect(readme).toContain(readFileSync(example, 'utf8'))
  const { auth, store } = await import(example.href)
  onTestFinished(() => store.close())
  const body = { email: 'ada@shop.example', password: 'lovelace!', name: 'Ada' }
  await auth.api.signUpEmail({ body })
  const { token } = await auth.api.signInEmail({ body })
  expect(await betterAuthStorage(store).get(token)).toContain(body.email)
})
