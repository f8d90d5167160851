import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { describe, expect, test } from 'vitest'
import {
  type JanitorOptions,
  articleKeys as keys,
  retentionChannel,
  type SessionStoreOptions,
} from '../src/index.ts'
import { adminForThisTest, readyStore, tokens, warningsOfThisTest } from './fixture.ts'
import { evictOnly, logIn, retentionServer } from './retention-fixture.ts'

const server = retentionServer()
const DAY = 24 * 3600
const daily = { rescaleEverySeconds: DAY, sweepEverySeconds: DAY }

/** A clock that runs, and differs from that of Redis, which is on the same machine. */
class ShiftedClock {
  #aheadMs = 0

  get ms(): number {
    return Date.now() + this.#aheadMs
  }

  get seconds(): number {
    return this.ms / 1000
  }

  pass(seconds: number): void {
    this.#aheadMs += 1000 * seconds
  }
}

const storeForThisTest = (clock: ShiftedClock, options: Partial<SessionStoreOptions> = {}) => {
  const clocked = { ...tokens, clock: () => clock.ms }
  return readyStore({ redis: `unix://${server.socket}`, tokens: clocked, ...options })
}

test.each([
  [15 * DAY, / ahead of /],
  [-15 * DAY, / behind /],
  [90, / ahead of /],
])('a janitor whose clock is %d s ahead changes nothing, and says so', async (ahead, message) => {
  const warnings = warningsOfThisTest()
  const clock = new ShiftedClock()
  const store = await storeForThisTest(clock)
  await logIn(store, clock, 5)
  const before = await server.dump()
  clock.pass(ahead - 5) // logIn has passed five seconds
  const janitor = store.janitor({ maxSessions: 1 })
  for (let run = 0; run < 2; run++) {
    await expect(janitor.runOnce()).rejects.toMatchObject({
      code: 'ONETRIP_INVALID_INPUT',
      mayHaveWritten: false,
      message: expect.stringMatching(message),
    })
  }
  expect(await server.dump()).toEqual(before)
  expect(warnings).toEqual([
    { code: 'ONETRIP_CLOCK', message: expect.stringMatching(message) }, // once
  ])
  const [skew] = /[\d.]+/.exec(warnings[0]?.message ?? '') ?? []
  expect(Math.abs(Number(skew) - Math.abs(ahead))).toBeLessThan(30)
  clock.pass(-ahead)
  expect(await janitor.runOnce()).toMatchObject({ worked: true, evicted: 4 })
  clock.pass(ahead)
  await expect(janitor.runOnce()).rejects.toThrow(message)
  expect(warnings).toHaveLength(2)
})

test.each([
  [58, {}],
  [-58, {}],
  [30, { maxClockSkewSeconds: 32 }],
  [15 * DAY, { maxClockSkewSeconds: Number.POSITIVE_INFINITY }],
])('a clock %d s ahead is accepted with %o', async (ahead, options) => {
  const warnings = warningsOfThisTest()
  const clock = new ShiftedClock()
  const store = await storeForThisTest(clock, { idleSeconds: 99 * DAY })
  await logIn(store, clock, 3)
  clock.pass(ahead - 3)
  const janitor = store.janitor({ ...evictOnly, maxSessions: 2, ...options })
  expect(await janitor.runOnce()).toMatchObject({ worked: true, evicted: 1 })
  expect(warnings).toEqual([])
})

test('a clock that jumps during a run ends no further sessions', async () => {
  const clock = new ShiftedClock()
  const store = await storeForThisTest(clock, { idleSeconds: DAY })
  clock.pass(-10 * DAY)
  await logIn(store, clock, 3)
  clock.pass(10 * DAY - 6)
  await logIn(store, clock, 3)
  const jump = () => {
    retentionChannel.unsubscribe(jump)
    clock.pass(15 * DAY)
  }
  retentionChannel.subscribe(jump) // its first step
  const janitor = store.janitor({ ...evictOnly, batchSize: 1 })
  expect(await janitor.runOnce()).toMatchObject({ evicted: 3 })
  expect(await server.redis.zcard(keys.recent(''))).toBe(3)
})

describe('the start of a task in the future', () => {
  /** Runs the janitor after a run at a time so many seconds ahead. Returns which tasks were due. */
  async function dueAfter(ahead: number, options: JanitorOptions = {}): Promise<string[]> {
    const clock = new ShiftedClock()
    const store = await storeForThisTest(clock)
    const begun = clock.seconds + ahead
    const tasks = { rescale: begun, sweep: begun }
    await server.redis.hset(keys.janitorTasks(), tasks)
    await store.janitor({ ...daily, ...options }).runOnce()
    const now = await server.redis.hgetall(keys.janitorTasks())
    return Object.keys(tasks).filter((task) => Number(now[task]) !== begun)
  }

  test.each([400 * DAY, 150])('is wrong if it is %d s ahead: the task is due', async (ahead) => {
    expect(await dueAfter(ahead)).toEqual(['rescale', 'sweep'])
  })

  test.each([
    [90, {}], // the clocks of two processes may each differ from that of Redis by a minute
    [-DAY + 100, {}],
    [400 * DAY, { maxClockSkewSeconds: Number.POSITIVE_INFINITY }],
    [45, { maxClockSkewSeconds: 30 }],
  ])('is possible if it is %d s ahead with %o: the task is not due', async (ahead, options) => {
    expect(await dueAfter(ahead, options)).toEqual([])
  })
})

test('without the permission +time, the janitor works, and warns once', async () => {
  const warnings = warningsOfThisTest()
  const own = await redisForThisTest()
  const admin = adminForThisTest(own.socket)
  await admin.call('ACL', 'SETUSER', 'default', '-time')
  const clock = new ShiftedClock()
  const store = await storeForThisTest(clock, { redis: `unix://${own.socket}` })
  await logIn(store, clock, 3)
  const janitor = store.janitor({ maxSessions: 2 })
  expect(await janitor.runOnce()).toMatchObject({ worked: true, evicted: 1 })
  expect(await janitor.runOnce()).toMatchObject({ worked: true, evicted: 0 })
  expect(warnings).toMatchObject([{ code: 'ONETRIP_CLOCK' }])

  await admin.call('ACL', 'SETUSER', 'default', '+time')
  clock.pass(15 * DAY)
  await expect(janitor.runOnce()).rejects.toThrow('ahead of that of Redis')
})
