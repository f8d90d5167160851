import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import {
  createSessionStore,
  articleKeys as keys,
  type RetentionEvent,
  retentionChannel,
  type StrategyName,
  strategyNames,
} from '../src/core/index.ts'
import { anyClock, Clock, retentionServer } from './retention-fixture.ts'

const server = retentionServer()
const secrets = ['a-secret-for-tests-a-secret-for-tests']

/** Collects the runs of janitors of this process, failed or not, until the test ends. */
function runsOfThisTest(): RetentionEvent[] {
  const events: RetentionEvent[] = []
  const listen = (message: unknown) => {
    const event = message as RetentionEvent
    if (event.type !== 'step') events.push(event)
  }
  retentionChannel.subscribe(listen)
  onTestFinished(() => void retentionChannel.unsubscribe(listen))
  return events
}

describe('a store with a default janitor', () => {
  const INTERVAL_MS = 60_000

  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
  afterEach(() => void vi.useRealTimers())

  function storeForThisTest(clock: Clock, strategy: StrategyName = 'batch') {
    const store = createSessionStore({
      url: `unix://${server.socket}`,
      strategy,
      idleSeconds: 60,
      tokens: { secrets, clock: () => clock.ms },
      janitor: anyClock,
    })
    onTestFinished(() => store.close())
    return store
  }

  /** Advances the time to the janitor's next run, once nothing else waits for a timer. */
  async function nextRun(): Promise<void> {
    await expect.poll(() => vi.getTimerCount()).toBe(1)
    vi.advanceTimersToNextTimer()
  }

  test.each(strategyNames)('ends an idle session: %s', async (strategy) => {
    const clock = new Clock()
    const store = storeForThisTest(clock, strategy)
    await store.ready()
    const { token } = await store.login('ada')
    await store.recordView(token, 'book')
    clock.pass(20 * 24 * 3600)
    await nextRun()
    await expect.poll(() => server.redis.exists(keys.recent(''))).toBe(0)
    await expect(store.recordView(token, 'book')).rejects.toMatchObject({
      code: 'ONETRIP_UNKNOWN_SESSION',
    })
    // The janitor stops before the store does; nothing runs later.
    await store.close()
    await expect.poll(() => vi.getTimerCount()).toBe(0)
  })

  test('runs after each interval', async () => {
    const clock = new Clock()
    const store = storeForThisTest(clock)
    await store.ready()
    const events = runsOfThisTest()
    for (let runs = 1; runs <= 3; runs++) {
      await nextRun()
      await expect.poll(() => events.length).toBe(runs)
    }
    expect(events).toMatchObject(events.map(() => ({ type: 'run', worked: true })))
  })

  test('starts at a random moment of the first interval', async () => {
    const events = runsOfThisTest()
    vi.spyOn(Math, 'random').mockReturnValueOnce(0.75)
    onTestFinished(() => void vi.restoreAllMocks())
    await storeForThisTest(new Clock()).ready()
    vi.advanceTimersByTime(0.75 * INTERVAL_MS - 1)
    expect(vi.getTimerCount()).toBe(1)
    expect(events).toEqual([])
    vi.advanceTimersByTime(1)
    await expect.poll(() => events).toMatchObject([{ type: 'run', worked: true }])
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
  const options = { url: `unix://${server.socket}`, tokens: { secrets } }
  const before = timers()
  const without = createSessionStore({ ...options, ...none })
  expect(set).not.toHaveBeenCalled()
  const store = createSessionStore(options)
  expect(set).toHaveBeenCalledTimes(1)
  expect(timers()).toBe(before)
  await Promise.all([store.close(), without.close()])
})

test('without Redis, failed runs are published and nothing else happens', async () => {
  const events = runsOfThisTest()
  const store = createSessionStore({
    url: 'unix:///nowhere/redis.sock',
    tokens: { secrets },
    janitor: { intervalSeconds: 0.01 },
  })
  onTestFinished(() => store.close())
  await expect.poll(() => events.length).toBeGreaterThan(2)
  const failure = { type: 'failure', error: { code: 'ONETRIP_NOT_SENT' } }
  expect(events).toMatchObject(events.map(() => failure))
})

test('an `onProgress` that throws does not stop the janitor', async () => {
  const told = vi.fn(() => {
    throw new Error('a bug of the caller')
  })
  const store = createSessionStore({
    url: `unix://${server.socket}`,
    tokens: { secrets },
    janitor: { intervalSeconds: 0.01, onProgress: told },
  })
  onTestFinished(() => store.close())
  await store.ready()
  await expect.poll(() => told.mock.calls.length).toBeGreaterThan(4)
})
