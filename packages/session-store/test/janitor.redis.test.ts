import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import {
  type JanitorOptions,
  articleKeys as keys,
  parseInfo,
  type RetentionEvent,
  retentionChannel,
  SessionStore,
} from '../src/index.ts'
import { adminForThisTest, gone, inMemory, messagesOf, newStore, tokens } from './fixture.ts'
import { anyClock, Clock, evictOnly, logIn, retentionServer, storeOn } from './retention-fixture.ts'

const server = retentionServer()

/** A janitor whose events, the only ones of the current test, can be awaited. */
function janitorOf(
  store: SessionStore,
  options: JanitorOptions = {},
  onEvent: (event: RetentionEvent) => void = () => {},
) {
  const events: RetentionEvent[] = []
  let arrived = Promise.withResolvers<void>()
  const listen = (message: unknown) => {
    events.push(message as RetentionEvent)
    onEvent(message as RetentionEvent)
    arrived.resolve()
    arrived = Promise.withResolvers()
  }
  retentionChannel.subscribe(listen)
  onTestFinished(() => void retentionChannel.unsubscribe(listen))
  return Object.assign(store.janitor({ ...evictOnly, ...options }), {
    events,
    /** Resolves with the first event of the type after the given number of events. */
    async event(type: RetentionEvent['type'], after = 0): Promise<RetentionEvent> {
      for (;;) {
        const found = events.slice(after).find((event) => event.type === type)
        if (found) return found
        await arrived.promise
      }
    },
  })
}

describe('one worker at a time', () => {
  test('a second janitor does nothing while the lock is held', async () => {
    const { clock, store } = await server.start()
    await logIn(store, clock, 5)
    await server.redis.set(keys.janitor(), 'somebody else')
    const janitor = store.janitor({ ...evictOnly, maxSessions: 2 })
    expect(await janitor.runOnce()).toMatchObject({ worked: false, evicted: 0 })
    expect(await server.redis.get(keys.janitor())).toBe('somebody else')
    await server.redis.del(keys.janitor())
    expect(await janitor.runOnce()).toMatchObject({ worked: true, evicted: 3 })
    expect(await server.redis.exists(keys.janitor())).toBe(0)
  })

  test('several at once end different sessions, and the right number in total', async () => {
    const clock = new Clock()
    const stores = await Promise.all([1, 2, 3].map(() => server.storeForThisTest(clock)))
    await logIn(stores[0] as SessionStore, clock, 60)
    const options = { ...evictOnly, maxSessions: 7, batchSize: 2 }
    const runs = await Promise.all(stores.map((store) => store.janitor(options).runOnce()))
    expect(runs.reduce((sum, { evicted }) => sum + evicted, 0)).toBe(53)
    expect(await server.redis.zcard(keys.recent(''))).toBe(7)
  })

  test.skipIf(inMemory)(
    'another process takes over when the lock of a killed process expires',
    async () => {
      const clock = new Clock()
      const own = await redisForThisTest()
      const store = await storeOn(own.socket, clock)
      await logIn(store, clock, 10)
      const script = fileURLToPath(new URL('dying-janitor.ts', import.meta.url))
      const dying = spawn(process.execPath, [script, own.socket], { stdio: 'ignore' })
      onTestFinished(() => void dying.kill('SIGKILL'))
      expect(await once(dying, 'exit')).toEqual([null, 'SIGKILL'])
      const admin = adminForThisTest(own.socket)
      expect(await admin.pttl(keys.janitor())).toBeGreaterThan(0)
      expect(await store.janitor(evictOnly).runOnce()).toMatchObject({ worked: false })
      await admin.pexpire(keys.janitor(), 1)

      const janitor = store.janitor({ ...evictOnly, maxSessions: 2 })
      const evicted = async () => (await janitor.runOnce()).evicted
      // One of the eight had ended before.
      await expect.poll(evicted).toBe(7)
    },
  )

  test('a worker that lost its lock stops before its next batch, and does not release it', async () => {
    const { clock, store } = await server.start()
    await logIn(store, clock, 20)
    const janitor = janitorOf(store, { maxSessions: 0, batchSize: 2 }, ({ type }) => {
      if (type === 'step') void server.redis.set(keys.janitor(), 'somebody else')
    })
    // The step in progress when the lock was lost is done.
    expect((await janitor.runOnce()).interrupted).toBe('lock lost')
    expect(janitor.events.length).toBeLessThan(5)
    expect(await server.redis.get(keys.janitor())).toBe('somebody else')
  })

  test.skipIf(inMemory)('a worker renews its lock during a long run', async () => {
    const { clock, store } = await server.start()
    await logIn(store, clock, 11)
    const left: Promise<number>[] = []
    const janitor = janitorOf(store, { maxSessions: 0, batchSize: 1 }, ({ type }) => {
      if (type !== 'step') return
      left.push(server.redis.pttl(keys.janitor()))
      void server.redis.pexpire(keys.janitor(), 10_000)
    })
    const run = await janitor.runOnce()
    expect(run.evicted).toBe(11)
    expect(run.interrupted).toBeUndefined()
    expect((await Promise.all(left)).filter((ms) => ms > 10_000).length).toBeGreaterThan(5)
  })
})

describe('start and stop', () => {
  test('runs within an interval and after each one, until it is stopped', async () => {
    const { clock, store } = await server.start()
    await logIn(store, clock, 3)
    const janitor = janitorOf(store, { maxSessions: 2, intervalSeconds: 0.01 })
    janitor.start()
    janitor.start() // once is enough
    expect(await janitor.event('run')).toMatchObject({ evicted: 1 })
    await logIn(store, clock, 3)
    await expect.poll(() => server.redis.zcard(keys.recent(''))).toBe(2)
    await janitor.stop()
    const told = janitor.events.length
    await logIn(store, clock, 3)
    expect(await server.redis.zcard(keys.recent(''))).toBe(5)
    expect(janitor.events).toHaveLength(told)
    janitor.start()
    await janitor.event('run', told)
    expect(await server.redis.zcard(keys.recent(''))).toBe(2)
  })

  test('stop waits for the batch in progress and releases the lock', async () => {
    const { clock, store } = await server.start()
    await logIn(store, clock, 20)
    const ended: string[] = []
    let stopped: Promise<unknown> | undefined
    const janitor = janitorOf(store, { maxSessions: 0, batchSize: 3 }, () => {
      stopped ??= janitor.stop().then(() => ended.push('stop'))
    })
    const run = janitor.runOnce().finally(() => ended.push('run'))
    expect(await run).toMatchObject({ evicted: 3, interrupted: 'stopped' })
    await stopped
    expect(ended).toEqual(['run', 'stop'])
    expect(await server.redis.zcard(keys.recent(''))).toBe(17)
    expect(await server.redis.exists(keys.janitor())).toBe(0)
    expect(await janitor.runOnce()).toMatchObject({ evicted: 17 })
  })

  test('closing the store stops it', async () => {
    const { store } = await server.start()
    const janitor = janitorOf(store, { intervalSeconds: 0.01 })
    janitor.start()
    await janitor.event('run')
    await store.close()
    expect(janitor.events.filter(({ type }) => type === 'failure')).toEqual([])
  })

  test.skipIf(inMemory)(
    'a failed run is published, and the next one works when Redis is back',
    async () => {
      const own = await redisForThisTest({ config: { appendfsync: 'always' } })
      const clock = new Clock()
      const store = await storeOn(own.socket, clock)
      await logIn(store, clock, 5)
      const janitor = janitorOf(store, { maxSessions: 2, intervalSeconds: 0.05 })
      own.program.signal('SIGKILL')
      await own.program.exited
      janitor.start()
      expect(await janitor.event('failure')).toMatchObject({ error: { name: 'StoreError' } })
      await own.restart()
      expect(await janitor.event('run')).toMatchObject({ evicted: 3 })
    },
  )
})

test.skipIf(inMemory)('the ACL user of the API has all permissions for this', async (context) => {
  const template = new URL('../../../apps/server-build/users.acl', import.meta.url)
  const [, rules = ''] = /^user api (.*(?:\n[ #].*)*)/m.exec(readFileSync(template, 'utf8')) ?? []
  const allowed = rules
    .split('\n')
    .filter((line) => !line.trim().startsWith('#'))
    .join(' ')
  const words = allowed.split(/\s+/).filter((word) => !word.startsWith('#'))
  const own = await redisForThisTest()
  const admin = adminForThisTest(own.socket, { db: 5 })
  const version = parseInfo(await admin.info('server')).get('redis_version') ?? ''
  if (version < '7.2') context.skip(`users.acl names commands that Redis ${version} does not have`)
  await admin.call('ACL', 'SETUSER', 'api', ...words, '>secret')

  const clock = new Clock()
  const url = `unix://api:secret@localhost${own.socket}?db=5`
  const store = await storeOn(own.socket, clock, { redis: url })
  await logIn(store, clock, 10)
  const janitor = store.janitor({ maxSessions: 3, keptItems: 5, batchSize: 2, sweepKeys: true })
  expect(await janitor.runOnce()).toMatchObject({ evicted: 7 })
  clock.pass(86_400)
  await admin.hdel(keys.login(''), (await admin.hkeys(keys.login('')))[0] ?? '')
  const run = await janitor.runOnce()
  expect(run).toMatchObject({ itemsDropped: 10, swept: 2, sweeping: false })
})

describe('a store with a default janitor', () => {
  const INTERVAL_MS = 60_000

  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
  afterEach(() => void vi.useRealTimers())

  function storeForThisTest(clock: Clock) {
    return newStore({
      redis: `unix://${server.socket}`,
      idleSeconds: 60,
      tokens: { ...tokens, clock: () => clock.ms },
      janitor: anyClock,
    })
  }

  /** Advances the time to the janitor's next run, once nothing else waits for a timer. */
  async function nextRun(): Promise<void> {
    await expect.poll(() => vi.getTimerCount()).toBe(1)
    vi.advanceTimersToNextTimer()
  }

  test('ends an idle session', async () => {
    const clock = new Clock()
    const store = storeForThisTest(clock)
    await store.ready()
    const { token } = await store.login('ada')
    await store.recordView(token, 'book')
    clock.pass(20 * 24 * 3600)
    await nextRun()
    await expect.poll(() => server.redis.exists(keys.recent(''))).toBe(0)
    await expect(store.recordView(token, 'book')).rejects.toMatchObject(gone)
    // The janitor stops before the store does; nothing runs later.
    await store.close()
    await expect.poll(() => vi.getTimerCount()).toBe(0)
  })

  test('starts at a random moment of the first interval', async () => {
    const events = messagesOf(retentionChannel)
    vi.spyOn(Math, 'random').mockReturnValueOnce(0.75)
    onTestFinished(() => void vi.restoreAllMocks())
    await storeForThisTest(new Clock()).ready()
    vi.advanceTimersByTime(0.75 * INTERVAL_MS - 1)
    expect(vi.getTimerCount()).toBe(1)
    expect(events).toEqual([])
    vi.advanceTimersByTime(1)
    await expect.poll(() => events.at(-1)).toMatchObject({ type: 'run', worked: true })
  })
})

test.each([
  { janitor: 'elsewhere' as const },
  { janitor: false as const, idleSeconds: Number.POSITIVE_INFINITY },
])('%o starts no janitor, and a janitor does not keep the process alive', async (none) => {
  const timers = () =>
    process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length
  const set = vi.spyOn(globalThis, 'setTimeout')
  onTestFinished(() => set.mockRestore())
  const options = { redis: `unix://${server.socket}`, tokens }
  const before = timers()
  const without = new SessionStore({ ...options, ...none })
  expect(set).not.toHaveBeenCalled()
  const store = new SessionStore(options)
  expect(set).toHaveBeenCalledTimes(1)
  expect(timers()).toBe(before)
  await Promise.all([store.close(), without.close()])
})
