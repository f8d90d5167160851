import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { externalSessions } from '../src/adapters/external-sessions.ts'
import {
  createSessionStore,
  type JanitorOptions,
  longLivedConnection,
  type SessionStore,
  type SessionStoreOptions,
} from '../src/core/index.ts'

const server = redisOfThisFile()
const url = () => `unix://${server.socket}`
const tokens = { secrets: ['a-secret-for-tests-a-secret-for-tests'] }

const anything = fc.anything({
  withBigInt: true,
  withBoxedValues: true,
  withDate: true,
  withMap: true,
  withNullPrototype: true,
  withObjectString: true,
  withSet: true,
  withSparseArray: true,
  withTypedArray: true,
})

const isNumber = (value: unknown, min: number, max: number, integer = true) =>
  typeof value === 'number' && value >= min && value <= max && (!integer || Number.isInteger(value))

const isNoString = (value: unknown) => typeof value !== 'string'
const isNoLimit = (value: unknown) => value !== undefined && !isNumber(value, 1, 1_000)

describe('functions of the store', () => {
  let store: SessionStore
  let token: string

  beforeAll(() => {
    store = createSessionStore({ url: url(), tokens, deadlineMs: 20_000, janitor: 'elsewhere' })
  })
  afterAll(() => store.close())

  const data = async () =>
    (await server.redis.keys('*')).filter((key) => !key.startsWith('janitor:')).sort()

  /** The call, and the values that it must reject. */
  const cases: [string, (value: never) => unknown, (value: unknown) => boolean][] = [
    ['login user', (value) => store.login(value), isNoString],
    ['tokenExpiresAt', async (value) => store.tokenExpiresAt(value), () => true],
    ['recordView token', (value) => store.recordView(value, 'book'), () => true],
    [
      'login remember',
      (value) => store.login('ada', { remember: value }),
      (value) => value !== undefined && typeof value !== 'boolean',
    ],
    ['recordView item', (value) => store.recordView(token, value), isNoString],
    [
      'recordView idempotencyKey',
      (value) => store.recordView(token, 'book', { idempotencyKey: value }),
      (value) => value !== undefined && isNoString(value),
    ],
    ['checkToken', (value) => store.checkToken(value), () => true],
    ['touch token', (value) => store.touch(value), () => true],
    [
      'touch unlessWithinSeconds',
      (value) => store.touch(token, value),
      (value) => value !== undefined && !isNumber(value, 0, Number.POSITIVE_INFINITY, false),
    ],
    ['recentSessions', (value) => store.recentSessions(value), isNoLimit],
    ['viewedItems', (value) => store.viewedItems(value), () => true],
    ['popularItems', (value) => store.popularItems(value), isNoLimit],
    ['logout', (value) => store.logout(value), () => true],
    ['userSessions', (value) => store.userSessions(value), () => true],
    [
      'userSessions page',
      (value) => store.userSessions(token, value),
      (value) => value !== undefined && (typeof value !== 'object' || value === null),
    ],
    [
      'userSessions limit',
      (value) => store.userSessions(token, { limit: value }),
      (value) => value !== undefined && !isNumber(value, 1, 100),
    ],
    [
      'userSessions cursor',
      (value) => store.userSessions(token, { cursor: value }),
      (value) => value !== undefined,
    ],
    ['revokeSession token', (value) => store.revokeSession(value, 'id'), () => true],
    ['revokeSession id', (value) => store.revokeSession(token, value), isNoString],
    ['logoutEverywhere', (value) => store.logoutEverywhere(value), () => true],
    ['endUserSessions', (value) => store.endUserSessions(value), isNoString],
    [
      'countAttempts subjects',
      (value) => store.countAttempts(value, 60),
      (value) => !Array.isArray(value) || value.length === 0 || [...value].some(isNoString),
    ],
    ['countAttempts subject', (value) => store.countAttempts(['ada', value], 60), isNoString],
    [
      'countAttempts windowSeconds',
      (value) => store.countAttempts(['ada'], value),
      (value) => !isNumber(value, 1, 1e9),
    ],
    [
      'ready',
      (value) => store.ready(value),
      (value) => value !== undefined && !isNumber(value, 0, 86_400_000, false),
    ],
  ]

  test.each(cases)('%s: rejects any other value and writes nothing', async (_, call, isWrong) => {
    await store.ready()
    token = (await store.login('ada')).token
    const before = await data()
    const property = fc.asyncProperty(anything.filter(isWrong), async (value) => {
      const answer = call(value as never) as Promise<unknown>
      await expect(answer).rejects.toMatchObject({
        name: 'StoreError',
        code: expect.stringMatching(/^ONETRIP_(INVALID_INPUT|INVALID_TOKEN|WRONG_TYPE)$/),
        mayHaveWritten: false,
      })
    })
    await fc.assert(property, {
      examples: [[[]], [{ id: 1 }], [Number.NaN], [-1], [null], [Symbol('x')], [[token]]]
        .filter(([value]) => isWrong(value))
        .map(([value]) => [value]),
    })
    expect(await data()).toEqual(before)
  })

  type Call = (token: string) => unknown

  test.each<[string, Call]>([
    ['login(42)', () => store.login(42 as never)],
    ['login(undefined)', () => store.login(undefined as never)],
    ['login with options that are a number', () => store.login('ada', 5 as never)],
    ['remember: yes', () => store.login('ada', { remember: 'yes' as never })],
    ['from: a number', () => store.login('ada', { from: 5 as never })],
    ['recordView(undefined)', (token) => store.recordView(token, undefined as never)],
    [
      'idempotencyKey: a number',
      (token) => store.recordView(token, 'book', { idempotencyKey: 5 as never }),
    ],
    ['touch: text', (token) => store.touch(token, '5' as never)],
    ['a limit that is text', () => store.popularItems('10' as never)],
    ['a page that is a number', (token) => store.userSessions(token, 5 as never)],
    ['an id that is a number', (token) => store.revokeSession(token, 5 as never)],
    ['subjects: text', () => store.countAttempts('ada' as never, 60)],
    ['a subject that is a number', () => store.countAttempts([5 as never], 60)],
    ['onProgress: text', () => store.exportUser('ada', { onProgress: 'x' as never })],
    ['signal: text', () => store.eraseUser('ada', { signal: 'x' as never })],
    ['an external id that is a number', () => externalSessions(store).read(5 as never)],
    ['data that is null', (token) => store.patch(token, null as never)],
    ['data that is text', (token) => store.patch(token, 'x' as never)],
    [
      'commands: text',
      () => store.run({ commands: 'PING' as never, readOnly: true, read: () => 0 }),
    ],
    ['read: text', () => store.run({ commands: [['PING']], readOnly: true, read: 'x' as never })],
    ['ready: text', () => store.ready('1' as never)],
  ])('%s: a wrong type is a mistake of the program (500)', async (_, call) => {
    const { token } = await store.login('ada')
    const before = await data()
    await expect(call(token)).rejects.toMatchObject({
      code: 'ONETRIP_WRONG_TYPE',
      statusCode: 500,
      mayHaveWritten: false,
      retrySafe: false,
    })
    expect(await data()).toEqual(before)
  })

  test.each<[string, Call]>([
    ['an empty user', () => store.login('')],
    ['a long user', () => store.login('x'.repeat(129))],
    ['a control character', (token) => store.recordView(token, 'a\0')],
    ['an empty idempotencyKey', (token) => store.recordView(token, 'a', { idempotencyKey: '' })],
    ['a limit of 0', () => store.popularItems(0)],
    ['a limit that is NaN', () => store.popularItems(Number.NaN)],
    ['negative seconds', (token) => store.touch(token, -1)],
    ['no subjects', () => store.countAttempts([], 60)],
    ['a cursor that is a list', (token) => store.userSessions(token, { cursor: [] as never })],
    ['no commands', () => store.run({ commands: [], readOnly: true, read: () => 0 })],
    ['BLPOP', () => store.run({ commands: [['BLPOP', 'a', 0]], readOnly: false, read: () => 0 })],
  ])('%s: a wrong value is a mistake of the client (400)', async (_, call) => {
    const { token } = await store.login('ada')
    await expect(call(token)).rejects.toMatchObject({
      code: 'ONETRIP_INVALID_INPUT',
      statusCode: 400,
    })
  })

  test('a token of a wrong type is an invalid token (401)', async () => {
    await expect(store.checkToken(42 as never)).rejects.toMatchObject({
      code: 'ONETRIP_INVALID_TOKEN',
      statusCode: 401,
    })
  })

  test('two users that are objects do not share sessions', async () => {
    for (const id of [1, 2]) {
      await expect(store.login({ id } as never)).rejects.toMatchObject({
        code: 'ONETRIP_WRONG_TYPE',
        message: 'user must be a string',
      })
    }
  })
})

describe('options', () => {
  let store: SessionStore

  beforeAll(() => {
    store = createSessionStore({ url: url(), tokens, janitor: 'elsewhere' })
  })
  afterAll(() => store.close())

  const isSet = (value: unknown) => value !== undefined
  const isNoSecret = (value: unknown) => typeof value !== 'string' || value.length < 32
  const build = (options: Partial<SessionStoreOptions>) => () =>
    createSessionStore({ url: url(), tokens, janitor: 'elsewhere', ...options })
  const withTokens = (options: object) => build({ tokens: { ...tokens, ...options } })

  const cases: [string, (value: never) => () => unknown, (value: unknown) => boolean][] = [
    ['url', (value) => build({ url: value }), () => true],
    ['client', (value) => build({ url: undefined, client: value }), () => true],
    ['strategy', (value) => build({ strategy: value }), isSet],
    ['keys', (value) => build({ keys: value }), isSet],
    ['tokens', (value) => build({ tokens: value }), (value) => value !== false],
    [
      'tokens.secrets',
      (value) => withTokens({ secrets: value }),
      (value) => !Array.isArray(value) || value.length === 0 || [...value].some(isNoSecret),
    ],
    [
      'tokens.secrets of',
      (value) => withTokens({ secrets: [tokens.secrets[0], value] }),
      isNoSecret,
    ],
    ['tokens.clock', (value) => withTokens({ clock: value }), isSet],
    [
      'tokens.lifetimeSeconds',
      (value) => withTokens({ lifetimeSeconds: value }),
      (value) => isSet(value) && !isNumber(value, 1, 100 * 365 * 86_400, false),
    ],
    [
      'idleSeconds',
      (value) => build({ idleSeconds: value }),
      (value) => isSet(value) && !isNumber(value, 0.001, Number.POSITIVE_INFINITY, false),
    ],
    [
      'deadlineMs',
      (value) => build({ deadlineMs: value }),
      (value) => isSet(value) && !isNumber(value, 1, 86_400_000, false),
    ],
    [
      'poolSize',
      (value) => build({ poolSize: value }),
      (value) => isSet(value) && !isNumber(value, 1, 1_000),
    ],
    [
      'maxInFlight',
      (value) => build({ maxInFlight: value }),
      (value) =>
        isSet(value) && value !== Number.POSITIVE_INFINITY && !isNumber(value, 1, Number.MAX_VALUE),
    ],
    [
      'maxSessionsPerUser',
      (value) => build({ maxSessionsPerUser: value }),
      (value) =>
        isSet(value) && value !== Number.POSITIVE_INFINITY && !isNumber(value, 1, Number.MAX_VALUE),
    ],
    [
      'janitor',
      (value) => build({ janitor: value }),
      (value) => isSet(value) && (typeof value !== 'object' || value === null),
    ],
    ['a sender', (value) => build({ sender: value }), isSet],
    [
      'connectTimeoutMs',
      (value) => () => longLivedConnection('redis://127.0.0.1', value),
      (value) => !isNumber(value, 1, 86_400_000, false),
    ],
    ...(['maxSessions', 'idleSeconds', 'intervalSeconds', 'batchSize', 'lockSeconds'] as const).map(
      (name): (typeof cases)[number] => [
        `janitor ${name}`,
        (value) => () => store.janitor({ [name]: value } as JanitorOptions),
        // There, null means the default.
        (value) => value !== null && isSet(value) && typeof value !== 'number',
      ],
    ),
  ]

  test.each(cases)('%s: any other value throws a TypeError', (_, build, isWrong) => {
    const property = fc.property(anything.filter(isWrong), (value) => {
      expect(build(value as never)).toThrow(TypeError)
    })
    const values = [[], {}, '1', 0, -1, Number.NaN, null, 'toString', ['x'.repeat(31)]]
    fc.assert(property, { examples: values.filter(isWrong).map((value) => [value]) })
  })

  test.each([
    ['a session store', () => createSessionStore(undefined as never)],
    ['a session store', () => createSessionStore(null as never)],
    ['a janitor', build({ janitor: null as never })],
    ['a janitor', () => store.janitor(null as never)],
  ])('options of %s that are not an object are named in the error', (what, create) => {
    expect(create).toThrow(`the options of ${what} must be an object`)
  })
})
