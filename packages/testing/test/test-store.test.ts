import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Command } from '@onetrip/session-store'
import { expect, onTestFinished, test, vi } from 'vitest'
import { codeOf, gone, outcomeOf } from '../../session-store/test/fixture.ts'
import { createTestStore, type TestStoreOptions } from '../src/index.ts'

function testStore(options?: TestStoreOptions) {
  const own = createTestStore(options)
  onTestFinished(() => own.store.close())
  return own
}

test('a store works without Redis, leaves no timers, and shares nothing', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const { store } = testStore()
  await store.ready()
  expect(await store.ping()).toEqual([{ node: 'memory' }])
  const { token } = await store.login('ada')
  expect(await store.recordView(token, 'book')).toEqual({ user: 'ada', views: 1 })
  expect(store.info).toMatchObject({ sender: 'memory', connections: 0, inFlight: 0 })
  expect(vi.getTimerCount()).toBe(0)
  await expect(testStore().store.checkToken(token)).rejects.toMatchObject(gone)
})

test('the clock stands still, and decides on tokens, idle sessions and the janitor', async () => {
  const { store, clock } = testStore({
    idleSeconds: 100,
    tokens: { lifetimeSeconds: 250 },
  })
  clock.now = 1_700_000_000_000
  const { token, expiresAt } = await store.login('ada')
  expect(expiresAt).toBe(clock.now + 250_000)
  for (let seconds = 0; seconds < 240; seconds += 60) {
    expect(await store.checkToken(token)).toEqual({ user: 'ada', lastSeenAt: clock.now })
    clock.pass(60)
    await store.touch(token)
  }
  clock.pass(10)
  expect(await outcomeOf(store.checkToken(token))).toBe('ONETRIP_EXPIRED_TOKEN')
  clock.now -= 1
  expect(await outcomeOf(store.checkToken(token))).toBe('ok')
  const idle = await store.login('bob')
  clock.pass(100)
  expect(await outcomeOf(store.checkToken(idle.token))).toBe('ok')
  clock.pass(0.001)
  await expect(store.checkToken(idle.token)).rejects.toMatchObject(gone)
  expect(await store.janitor().runOnce()).toMatchObject({ evicted: 2 })
})

test('the clock decides on counters of attempts and idempotency keys', async () => {
  const { store, clock } = testStore()
  clock.now = 1_700_000_000_000 // 40 s before the end of a window
  const { token } = await store.login('ada')
  const view = () => store.recordView(token, 'book', { idempotencyKey: 'first' })
  expect(await view()).toMatchObject({ views: 1 })
  expect((await store.countAttempts(['ada'], 60)).counts).toEqual([1])
  clock.pass(39)
  expect((await store.countAttempts(['ada'], 60)).counts).toEqual([2])
  clock.pass(1)
  expect((await store.countAttempts(['ada'], 60)).counts).toEqual([1])
  clock.pass(559.999)
  expect(await view()).toMatchObject({ views: 1 })
  clock.pass(0.001)
  expect(await view()).toMatchObject({ views: 2 })
})

test.each([
  ['not sent', { code: 'ONETRIP_NOT_SENT', retrySafe: true, mayHaveWritten: false }, 1],
  ['request lost', { code: 'ONETRIP_OUTCOME_UNKNOWN', mayHaveWritten: true }, 1],
  ['reply lost', { code: 'ONETRIP_OUTCOME_UNKNOWN', mayHaveWritten: true }, 2],
] as const)('%s: the next operation fails, and no other', async (failure, error, views) => {
  const { store, failNext } = testStore()
  const { token } = await store.login('ada')
  failNext(failure)
  await expect(store.recordView(token, 'book')).rejects.toMatchObject(error)
  expect(await store.recordView(token, 'book')).toEqual({ user: 'ada', views })
})

test('a failure can wait for a command, repeat, and be cancelled', async () => {
  const { store, failNext } = testStore()
  const { token } = await store.login('ada')
  failNext('not sent', { command: 'ZINCRBY', times: 2 })
  const cancel = failNext('request lost', { command: 'HGETALL', times: Number.POSITIVE_INFINITY })
  const outcomes = async () => [
    await outcomeOf(store.checkToken(token)),
    await outcomeOf(store.recordView(token, 'book')),
    await outcomeOf(store.data(token)),
  ]
  const [unsent, unknown] = ['ONETRIP_NOT_SENT', 'ONETRIP_OUTCOME_UNKNOWN']
  expect(await outcomes()).toEqual(['ok', unsent, unknown])
  expect(await outcomes()).toEqual(['ok', unsent, unknown])
  expect(await outcomes()).toEqual(['ok', 'ok', unknown])
  cancel()
  expect(await outcomes()).toEqual(['ok', 'ok', 'ok'])
  expect(() => failNext('lost' as never)).toThrow('one of not sent, request lost, reply lost')
  expect(() => failNext('not sent', { command: 'zincrby' })).toThrow('the command zincrby')
})

test('a lost subscription is replaced; sessions that are gone are reported', async () => {
  const { store, clock, loseSubscriptions } = testStore()
  const told: string[] = []
  const [idle, { token }] = [await store.login('ada'), await store.login('eve')]
  for (const watched of [idle.token, token]) {
    await store.watchSession(watched, () => told.push(watched))
  }
  clock.pass(14 * 24 * 3600)
  await store.recordView(token, 'book')
  clock.pass(1)
  loseSubscriptions()
  await expect.poll(() => told).toEqual([idle.token])
  await store.logout(token)
  await expect.poll(() => told).toEqual([idle.token, token])
})

const own = (...command: Command) => ({
  commands: [['HSET', 'key', 'field', 'value'], command] satisfies Command[],
  readOnly: false,
  read: (replies: readonly unknown[]) => replies.at(-1),
})

test.each([
  [own('SETBIT', 'bits', 1, 1), 'the command SETBIT'],
  [own('constructor', 'key'), 'the command constructor'],
  [own('EVAL', 'return 1', 0), 'this script: return 1'],
  [own('EVAL', '-- constructor\nreturn 1', 0), 'this script: -- constructor'],
  [own('ZADD', 'zset', 'GT', 1, 'a'), 'the option GT'],
])('what only Redis can do is an error that says so: %j', async ({ ...operation }, what) => {
  const { store } = testStore()
  await expect(store.run(operation)).rejects.toMatchObject({
    code: 'ONETRIP_WRONG_TYPE',
    message: expect.stringContaining(`the store for tests does not support ${what}`),
  })
  // An unknown option is noticed when its command runs, anything else before the operation.
  const commands: Command[] = [['EXISTS', 'key']]
  expect(await store.run({ ...operation, commands })).toBe(what.includes('option') ? 1 : 0)
})

test('errors that Redis replies are refusals', async () => {
  const { store } = testStore()
  const refused: Command[] = [
    ['ZADD', 'key', 1, 'a'],
    ['GET', 'key'],
    ['ZINCRBY', 'zset', 'many', 'a'],
    ['EVAL', '-- release lock', 1, 'key', 'me'],
  ]
  for (const command of refused) {
    expect(await store.run(own(...command)).catch(codeOf), `${command}`).toBe('ONETRIP_REFUSED')
  }
})

test('production is refused, unless it is allowed', () => {
  vi.stubEnv('NODE_ENV', 'production')
  onTestFinished(() => void vi.unstubAllEnvs())
  expect(() => createTestStore()).toThrow('use SessionStore in production')
  expect(() => createTestStore({ allowInProduction: 'yes' as never })).toThrow(TypeError)
  testStore({ allowInProduction: true })
})

test('options are those of a store', () => {
  expect(() => createTestStore({ idleSeconds: 0 })).toThrow('idleSeconds')
  expect(() => createTestStore({ idelSeconds: 1 } as never)).toThrow('idelSeconds')
  expect(() => createTestStore({ tokens: false } as never)).toThrow('tokens must be an object')
  expect(() => createTestStore({ tokens: { secret: 'x' } } as never)).toThrow('no option secret')
  expect(() => createTestStore({ redis: 'redis://127.0.0.1' } as never)).toThrow(
    'exactly one of redis',
  )
})

test('examples/testing.ts passes, and is the program of the README', () => {
  const path = fileURLToPath(new URL('../examples/testing.ts', import.meta.url))
  const readme = fileURLToPath(new URL('../README.md', import.meta.url))
  expect(readFileSync(readme, 'utf8')).toContain(readFileSync(path, 'utf8'))
  const output = execFileSync(process.execPath, [path], { encoding: 'utf8' })
  expect(output).toContain('pass 2')
})
