import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { type TestRedis, testRedis } from '../../.vitest/redis.ts'
import { apiFacts, readApi } from '../src/measure/api-metrics.ts'
import { apiUrl, startApi, type Variant } from '../src/stack/api.ts'
import { clientOf, contenders } from '../src/stack/contenders.ts'
import { freePorts } from '../src/stack/ports.ts'
import type { Program } from '../src/stack/program.ts'

const usersFile = fileURLToPath(new URL('../../apps/server-build/users.acl', import.meta.url))

/** Applications of another kind, with the views in the session. */
const hasSessions = (name: Variant) => name === 'connect-redis' || name === 'express'

/** Other clients behind our store: what they write is what ours writes. */
const clients = contenders.filter((name) => name !== 'noop' && !hasSessions(name))

const isClient = (name: Variant) => clients.some((client) => client === name)

let server: TestRedis
let redis: Redis
let redisUrl: string

beforeAll(async () => {
  const [port = 0] = await freePorts(1)
  server = await testRedis({ port }) // valkey-glide knows no Unix sockets
  redis = new Redis(server.socket)
  redisUrl = `redis://api:${await addApiUser()}@127.0.0.1:${port}`
})

/** The user that a stack's APIs have, with no more rights than there. Returns the password. */
async function addApiUser(): Promise<string> {
  const password = 'a-password-for-tests'
  const hash = createHash('sha256').update(password).digest('hex')
  const [, rules = ''] = /^user api (.*(?:\n .*)*)/m.exec(await readFile(usersFile, 'utf8')) ?? []
  const lines = rules.replace('@API_PASSWORD_SHA256@', hash).split('\n')
  const words = lines.filter((line) => !line.startsWith(' # ')).flatMap((line) => line.split(' '))
  await redis.call('ACL', 'SETUSER', 'api', ...words.filter((word) => word !== ''))
  return password
}

afterAll(async () => {
  redis.disconnect()
  await server.stop()
})

beforeEach(async () => {
  await redis.flushall() // a server of this file's own
})

interface Answer {
  status: number
  body: Record<string, unknown>
}

interface Api {
  program: Program
  url: string
  login(user: string): Promise<string>
  logout(token: string): Promise<void>
  view(token: string, item: string): Promise<Answer>
  get(path: string, token?: string): Promise<Answer>
}

/** A variant of the API for all tests of a `describe`. */
function apiOfThese(variant: Variant): { readonly api: Api } {
  let api: Api | undefined
  beforeAll(async () => {
    api = await start(variant)
  })
  afterAll(async () => {
    expect(await api?.program.stop()).toEqual({ code: 0, signal: null })
  })
  return {
    get api() {
      if (!api) throw new Error('it runs while tests do')
      return api
    },
  }
}

/** A variant of the API, stopped when the current test ends. */
async function started(variant: Variant): Promise<Api> {
  const api = await start(variant)
  onTestFinished(async () => void (await api.program.stop()))
  return api
}

async function start(variant: Variant): Promise<Api> {
  const [port = 0] = await freePorts(1)
  const sessionSecret = 'a-secret-for-tests-a-secret-for-tests'
  const program = await startApi({ variant, host: '127.0.0.1', port, redisUrl, sessionSecret })
  const ask = async (method: string, path: string, token: string, body?: object) => {
    const answer = await fetch(`${apiUrl('127.0.0.1', port)}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    const text = await answer.text()
    return { status: answer.status, body: text && JSON.parse(text) }
  }
  return {
    program,
    url: apiUrl('127.0.0.1', port),
    login: async (user) => String((await ask('POST', '/login', '', { user })).body.token),
    logout: async (token) => void (await ask('POST', '/logout', token, {})),
    view: (token, item) => ask('POST', '/views', token, { item }),
    get: (path, token = '') => ask('GET', path, token),
  }
}

const viewers = ['ada', 'grace', 'mary']
const items = ['tea', 'book', 'lamp', 'tea', 'cup', 'tea']

/** Views by all users, all at the same time. Returns the answers, item by item. */
async function manyViews(api: Api): Promise<Map<string, unknown[]>> {
  const tokens = await Promise.all(viewers.map(api.login))
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => tokens)
      .flat()
      .flatMap((token) => items.map((item) => api.view(token, item))),
  )
  const counts = new Map<string, unknown[]>()
  for (const { status, body } of answers) {
    expect(status).toBe(200)
    expect(viewers).toContain(body.user)
    counts.set(String(body.item), [...(counts.get(String(body.item)) ?? []), body.views])
  }
  return counts
}

/** What is in Redis but for the janitor's lock, with users instead of ids, and without times. */
async function records(): Promise<object> {
  const logins = await redis.hgetall('login:')
  const views = await Promise.all(
    Object.entries(logins).map(async ([id, user]) => {
      const viewed = await redis.zrange(`viewed:${id}`, '0', '-1')
      return [user, { recent: (await redis.zscore('recent:', id)) !== null, viewed: viewed.sort() }]
    }),
  )
  const keys = (await redis.keys('*')).filter((key) => !key.startsWith('janitor:'))
  const types = keys.map((key) => key.replace(/:.+/, ':id')).sort()
  const counts = await redis.zrange('viewed:', '0', '-1', 'WITHSCORES')
  return { keys: types, sessions: Object.fromEntries(views), counts }
}

let expected: object

describe.each([...clients, 'connect-redis', 'express', 'batch'] as const)('%s', (name) => {
  const these = apiOfThese(name)

  test('from login to logout', async () => {
    const { api } = these
    const token = await api.login('ada')
    expect(await api.view(token, 'tea')).toEqual({
      status: 200,
      body: { user: 'ada', item: 'tea', views: 1 },
    })
    await api.view(token, 'book')
    expect((await api.view(await api.login('grace'), 'tea')).body).toMatchObject({ views: 2 })
    expect(await api.view(token, 'tea')).toMatchObject({ body: { views: 3 } })
    expect(await api.get('/me', token)).toMatchObject({
      status: 200,
      body: { user: 'ada', lastSeen: expect.closeTo(Date.now() / 1000, -2) },
    })
    const { body } = await api.get('/me/views', token)
    expect(body).toEqual({
      items: [
        { item: 'tea', viewedAt: expect.closeTo(Date.now() / 1000, -2) },
        { item: 'book', viewedAt: expect.closeTo(Date.now() / 1000, -2) },
      ],
    })
    expect(await api.get('/items/popular?limit=1')).toEqual({
      status: 200,
      body: { items: [{ item: 'tea', views: 3 }] },
    })
    for (let view = 0; view < 30; view++) await api.view(token, `item ${view}`)
    const { items } = (await api.get('/me/views', token)).body as { items: { item: string }[] }
    expect(items).toHaveLength(25)
    expect(items[0]).toMatchObject({ item: 'item 29' })

    expect(await api.view(`${token.slice(0, -5)}AAAAA`, 'tea')).toMatchObject({ status: 401 })
    expect(await api.view(token, '')).toMatchObject({ status: 400 })
    await api.logout(token)
    expect(await api.view(token, 'tea')).toMatchObject({ status: 401 })
    expect(await api.get('/me', token)).toMatchObject({ status: 401 })
    expect(await api.get('/readyz')).toMatchObject({ status: 200 })
  })

  test('tells what it costs', async () => {
    const { api } = these
    const token = await api.login('ada')
    const before = await readApi(api.url)
    await api.view(token, 'tea')
    const after = await readApi(api.url)
    expect({
      commands: after.commands - before.commands,
      roundTrips: after.roundTrips - before.roundTrips,
    }).toEqual(hasSessions(name) ? { commands: 3, roundTrips: 3 } : { commands: 5, roundTrips: 1 })
    expect(after.cpuSeconds).toBeGreaterThan(before.cpuSeconds)
    expect((await apiFacts(api.url)).strategy).toBe(name)
  })

  test('has a version to be shown', async () => {
    expect(await clientOf(name)).toMatch(/^\S+ \d+\.\d+\.\d+$/)
  })

  if (!isClient(name)) return

  test('counts each view once, and writes what our pipeline writes', async () => {
    if (!expected) {
      await manyViews(await started('pipeline'))
      expected = await records()
      await redis.flushall()
    }
    const { api } = these
    const counts = await manyViews(api)
    for (const item of new Set(items)) {
      const total = 10 * viewers.length * items.filter((each) => each === item).length
      // Each view was told another count: none was counted twice, none was lost.
      expect(counts.get(item)?.toSorted((a, b) => Number(a) - Number(b))).toEqual(
        Array.from({ length: total }, (_, index) => index + 1),
      )
    }
    expect(await records()).toEqual(expected)
  })

  test('refuses a forged token, and a session that is gone, of which nothing is left', async () => {
    const { api } = these
    const token = await api.login('ada')
    expect(await api.view(`${token.slice(0, -5)}AAAAA`, 'tea')).toMatchObject({ status: 401 })
    await api.logout(token)
    expect(await api.view(token, 'tea')).toMatchObject({
      status: 401,
      body: { code: 'ONETRIP_UNKNOWN_SESSION' },
    })
    expect(await redis.keys('*')).toEqual([])
  })

  test('tells of a command that Redis refused, and goes on', async () => {
    const { api } = these
    const token = await api.login('ada')
    await redis.set(`viewed:${token.split('.')[0]}`, 'no sorted set')
    const code = name.startsWith('node-redis') ? 'ONETRIP_OUTCOME_UNKNOWN' : 'ONETRIP_REFUSED'
    expect(await api.view(token, 'tea')).toMatchObject({
      status: 503,
      body: { code, mayHaveWritten: true },
    })
    expect(await api.view(await api.login('grace'), 'tea')).toMatchObject({ status: 200 })
  })
})

test('connect-redis: a view is three round trips; views at the same time overwrite each other', async () => {
  const api = await started('connect-redis')
  const token = await api.login('ada')
  const commands = async () =>
    Number(/total_commands_processed:(\d+)/.exec(await redis.info('stats'))?.[1])
  const before = await commands()
  await api.view(token, 'tea')
  expect(await commands()).toBe(before + 4) // GET, ZINCRBY, SET; the INFO before

  const viewed = Array.from({ length: 25 }, (_, index) => `item ${index}`)
  await Promise.all(viewed.map((item) => api.view(token, item)))
  const { items } = (await api.get('/me/views', token)).body as { items: unknown[] }
  expect(items.length).toBeLessThan(25) // each wrote back the whole list that it had read
  expect((await api.get('/items/popular?limit=100')).body).toMatchObject({
    items: Array.from({ length: 26 }, () => ({ views: 1 })),
  })

  const ours = await started('batch')
  const other = await ours.login('ada')
  await Promise.all(viewed.map((item) => ours.view(other, item)))
  expect((await ours.get('/me/views', other)).body).toMatchObject({ items: { length: 25 } })
})

test('connect-redis: a view brings back the session that was logged out meanwhile', async () => {
  const api = await started('connect-redis')
  const token = await api.login('ada')
  const [session = ''] = await redis.keys('limit:sess:*')
  const other = redis.duplicate() // as a second process of the application
  onTestFinished(() => other.disconnect())
  await other.ping()

  await redis.call('CLIENT', 'PAUSE', 60_000, 'WRITE')
  const view = api.view(token, 'tea')
  // It has read the session by the time its first write waits.
  await vi.waitFor(async () => {
    expect(await redis.call('CLIENT', 'LIST')).toMatch(/flags=b .*cmd=zincrby /)
  })
  const logout = other.del(session)
  await redis.call('CLIENT', 'UNPAUSE')
  expect(await logout).toBe(1)
  expect(await view).toMatchObject({ status: 200 })
  expect(await api.get('/me', token)).toMatchObject({ status: 200, body: { user: 'ada' } })
})

test('glide leaves no socket behind, however it ends', async () => {
  const sockets = async ({ pid }: Program) =>
    (await readdir('/tmp')).filter((name) => name.startsWith(`glide-socket-${pid}-`))
  const stopped = (await started('glide')).program
  expect(await sockets(stopped)).toHaveLength(1)
  await stopped.stop()
  expect(await sockets(stopped)).toEqual([])

  const killed = (await started('glide')).program
  killed.signal('SIGKILL')
  await killed.exited
  expect(await sockets(killed)).toEqual([])
})

test('noop asks Redis nothing, but checks the token and answers in the same shape', async () => {
  const api = await started('noop')
  const token = await api.login('ada')
  const commands = async () =>
    Number(/total_commands_processed:(\d+)/.exec(await redis.info('stats'))?.[1])
  const before = await commands()
  const answer = await api.view(token, 'tea')
  expect(answer).toEqual({ status: 200, body: { user: expect.any(String), item: 'tea', views: 1 } })
  expect(await api.view('x', 'tea')).toMatchObject({ status: 401 })
  expect(await api.get('/me', token)).toMatchObject({ status: 200, body: { user: 'nobody' } })
  expect(await api.get('/me/views', token)).toEqual({ status: 200, body: { items: [] } })
  expect(await api.get('/items/popular')).toEqual({ status: 200, body: { items: [] } })
  await api.logout(token)
  expect(await commands()).toBe(before + 1) // the INFO before
  expect(await api.program.stop()).toEqual({ code: 0, signal: null })
})
