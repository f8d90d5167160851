import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createSessionStore, SessionStore, type SessionStoreOptions } from '../src/index.ts'
import { sessionCookie } from '../src/web/cookie.ts'
import { newStore, tokens } from './fixture.ts'

const server = redisOfThisFile()
const here = () => ({ redis: `unix://${server.socket}`, tokens, janitor: 'elsewhere' as const })

const values = [undefined, null, true, 5, 1n, 'text', Symbol('x'), [], {}, new Date(), () => 0]

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'list' : typeof value
}

/** Values of all other types than these. */
const valuesBut = (types: string): never[] =>
  values.filter((value) => !types.split(' ').includes(typeOf(value))) as never[]

describe('functions of the store', () => {
  let store: SessionStore
  let token: string

  beforeAll(async () => {
    store = new SessionStore(here())
    await store.ready()
  })
  beforeEach(async () => {
    token = (await store.login('ada')).token
  })
  afterAll(() => store.close())

  const data = async () => (await server.redis.keys('*')).sort()

  const run = (commands: never) => store.run({ commands, readOnly: false, read: () => 0 })

  /** Calls with an argument, and the types that the argument may have. */
  const calls: [argument: string, types: string, call: (value: never) => Promise<unknown>][] = [
    ['login user', 'string', (value) => store.login(value)],
    ['login options', 'object list undefined', (value) => store.login('ada', value)],
    ['remember', 'boolean undefined', (value) => store.login('ada', { remember: value })],
    ['from', 'string undefined', (value) => store.login('ada', { from: value })],
    ['label', 'string undefined', (value) => store.login('ada', { label: value })],
    ['recordView item', 'string', (value) => store.recordView(token, value)],
    [
      'idempotencyKey',
      'string undefined',
      (value) => store.recordView(token, 'book', { idempotencyKey: value }),
    ],
    ['touch', 'number undefined', (value) => store.touch(token, value)],
    ['patch', 'object list', (value) => store.patch(token, value)],
    ['ifVersion', 'number undefined', (value) => store.patch(token, {}, { ifVersion: value })],
    ['recentSessions', 'number undefined', (value) => store.recentSessions(value)],
    ['revokeSession id', 'string', (value) => store.revokeSession(token, value)],
    ['countAttempts subjects', 'list', (value) => store.countAttempts(value, 60)],
    ['countAttempts subject', 'string', (value) => store.countAttempts(['ada', value], 60)],
    ['ready', 'number undefined', (value) => store.ready(value)],
    ['commands', 'list', run],
    ['a command', 'list', (value) => run([['SET', 'a', 1], value] as never)],
    ['an argument of a command', 'string number', (value) => run([['GET', value]] as never)],
    ['read', 'function', (read) => store.run({ commands: [['GET', 'a']], readOnly: true, read })],
  ]

  test.each(calls)('%s must be: %s', async (_, types, call) => {
    const before = await data()
    for (const value of valuesBut(types)) {
      await expect(call(value), typeOf(value)).rejects.toMatchObject({
        name: 'StoreError',
        code: 'ONETRIP_WRONG_TYPE', // a mistake of the program
        statusCode: 500,
        mayHaveWritten: false,
        retrySafe: false,
      })
    }
    expect(await data()).toEqual(before)
  })

  const long = 'x'.repeat(300)

  test.each<[string, () => Promise<unknown>[]]>([
    ['user', () => ['', long, 'a\nb', '\u202ereversed', '\ud800'].map((user) => store.login(user))],
    [
      'label',
      () =>
        ['x'.repeat(201), `${'é'.repeat(100)}x`, 'a\tb', 'a\x85', '\u202ereversed', '\ud800'].map(
          (label) => store.login('ada', { label }),
        ),
    ],
    ['item', () => ['', long, 'a\0'].map((item) => store.recordView(token, item))],
    [
      'idempotencyKey',
      () => ['', long].map((key) => store.recordView(token, 'a', { idempotencyKey: key })),
    ],
    ['limit', () => [0, 1.5, Number.NaN, 1_001].map((limit) => store.popularItems(limit))],
    ['ifVersion', () => [-1, 1.5, 1 / 0].map((ifVersion) => store.patch(token, {}, { ifVersion }))],
    ['unlessWithinSeconds', () => [store.touch(token, -1)]],
    ['subjects', () => [store.countAttempts([], 60)]],
    ['windowSeconds', () => [0, 1.5].map((seconds) => store.countAttempts(['ada'], seconds))],
    ['timeoutMs', () => [store.ready(-1)]],
    ['commands', () => [run([] as never)]],
  ])('a wrong value of %s is a mistake of the client (400)', async (name, call) => {
    const before = await data()
    for (const rejected of call()) {
      await expect(rejected).rejects.toMatchObject({
        code: 'ONETRIP_INVALID_INPUT',
        statusCode: 400,
        message: expect.stringContaining(name),
      })
    }
    expect(await data()).toEqual(before)
  })

  const functions = [
    'recordView',
    'checkToken',
    'touch',
    'data',
    'patch',
    'viewedItems',
    'logout',
    'userSessions',
    'revokeSession',
    'logoutEverywhere',
    'endOtherSessions',
  ] as const

  test.each(functions)('%s: anything but a valid token is an invalid token', async (name) => {
    const call = (store[name] as (token: unknown, argument: never) => Promise<unknown>).bind(store)
    const before = await data()
    for (const value of [...values, [token], `${token.slice(0, -5)}AAAAA`]) {
      await expect(call(value, 'book' as never)).rejects.toMatchObject({
        code: 'ONETRIP_INVALID_TOKEN',
        statusCode: 401,
      })
    }
    expect(await data()).toEqual(before)
  })
})

describe('options', () => {
  /** Options by their path, such as `tokens.clock`, and the types that they may have. */
  const types = {
    redis: 'object list',
    sender: 'undefined',
    keys: 'undefined',
    prefix: 'string undefined',
    tokens: '',
    'tokens.secrets': '',
    'tokens.clock': 'function undefined',
    janitor: 'object list undefined',
    'janitor.sweepKeys': 'boolean undefined',
  }

  /** Numbers, and values that are out of range. */
  const numbers = {
    'tokens.lifetimeSeconds': [0, 1e10],
    idleSeconds: [0, Number.NaN],
    deadlineMs: [0, 86_400_001],
    poolSize: [0, 1.5],
    maxInFlight: [0, 1.5],
    maxSessionsPerUser: [0, 1.5],
    'janitor.maxSessions': [-1],
    'janitor.intervalSeconds': [0, 100_000],
    'janitor.batchSize': [0, 1_001, 1.5],
    'janitor.keptItems': [-1],
    'janitor.maxClockSkewSeconds': [0],
  }

  const groups: Record<string, object> = { tokens }

  function createWith(path: string, value: unknown): SessionStore {
    const [name = '', inner] = path.split('.')
    const option = inner === undefined ? value : { ...groups[name], [inner]: value }
    return newStore({ ...here(), [name]: option } as SessionStoreOptions)
  }

  test.each(Object.entries(types))(
    '%s: a value of a wrong type throws a TypeError',
    (path, types) => {
      for (const value of valuesBut(types)) {
        expect(() => createWith(path, value), typeOf(value)).toThrow(TypeError)
      }
    },
  )

  test.each<[string, unknown[]]>([
    ...Object.entries(numbers).map(([path, values]): [string, unknown[]] => [
      path,
      [...values, ...valuesBut('number undefined')],
    ]),
    ['tokens.secrets', [[], ['x'.repeat(31)], [tokens.secrets[0], 'short']]],
    ['prefix', ['a{b}', '{', 'a\n', '\ud800', 'x'.repeat(129)]],
    ['janitor', ['nowhere', false]], // false needs `idleSeconds: Infinity`
  ])('%s: any other value throws a TypeError that names it', (path, values) => {
    for (const value of values) {
      expect(() => createWith(path, value)).toThrow(TypeError)
      expect(() => createWith(path, value)).toThrow(path.replace(/^janitor\./, ''))
    }
  })

  test.each<[string, unknown, string]>([
    ['idleSecond', 60, 'no option idleSecond: its options are redis, sender'],
    ['ttl', 60, 'no option ttl: its options are redis, sender, keys,'],
    ['toString', 1, 'no option toString'],
    ['tokens.secret', 'x', 'tokens has no option secret: its options are secrets,'],
    ['strategy', 'naive', 'no option strategy: use sender; apps/api/src/strategies has naive'],
    ['cachedChecks', 10, 'no option cachedChecks: each check asks Redis'],
    ['url', 'redis://127.0.0.1', 'no option url: it is now redis, with the same URL'],
    ['tls', {}, 'no option tls: set redis to options of ioredis'],
    ['client', {}, 'no option client: the store opens its own connections'],
    ['dataLimits', { fields: 100 }, 'no option dataLimits: its limits are constants'],
    ['janitor.maxSession', 5, 'no option maxSession:'],
    ['janitor.idleSeconds', 5, 'no option idleSeconds: set idleSeconds of the store'],
    ['janitor.lockSeconds', 5, 'no option lockSeconds: other processes wait 30 s'],
    ['janitor.onProgress', () => {}, 'no option onProgress: subscribe to the diagnostics channel'],
  ])('an unknown option %s: %j stops the start', (path, value, hint) => {
    expect(() => createWith(path, value)).toThrow(TypeError)
    expect(() => createWith(path, value)).toThrow(hint)
    createWith(path, undefined)
  })

  test('so does one of a janitor, of a cookie, or of the store of a framework', () => {
    const store = newStore(here())
    const unknown = { maxAge: 60 } as object
    for (const create of [(options: object) => store.janitor(options), sessionCookie]) {
      expect(() => create(unknown)).toThrow('no option maxAge')
    }
    for (const options of [null, 5]) {
      expect(() => store.janitor(options as never)).toThrow('must be an object')
      expect(() => new SessionStore(options as never)).toThrow('must be an object')
    }
  })

  test('a store has either redis or sender', () => {
    const sender = { name: 'own', send: async () => [], close: async () => {} }
    const other = { ...here(), redis: undefined }
    expect(() => newStore(other)).toThrow('exactly one of redis and sender')
    expect(() => newStore({ ...here(), sender })).toThrow('exactly one of redis and sender')
    expect(() => newStore({ ...other, sender, poolSize: 4 })).toThrow('poolSize needs redis')
  })

  test('the function of earlier versions says what replaces it', () => {
    expect(createSessionStore).toThrow('new SessionStore(options), and its option url is redis')
  })
})
