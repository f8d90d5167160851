import { existsSync } from 'node:fs'
import { processesOf } from '@onetrip/stack/testing/folders.ts'
import { redisForThisTest, type TestRedis } from '@onetrip/stack/testing/redis.ts'
import { Redis } from 'ioredis'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { Done, LaneResult, RaceEvent, RaceEvents } from '../../src/events.ts'
import { raceLimits } from '../../src/service/race.ts'
import { totals } from '../../src/service/summary.ts'
import { demoOn, eventsUntil, input } from './demo-service.ts'

function dataOf<Name extends RaceEvent['name']>(events: readonly RaceEvent[], name: Name) {
  return events.flatMap((event) => (event.name === name ? [event.data as RaceEvents[Name]] : []))
}

/** With concurrent requests, so that `batch` can send several views together. */
const concurrent = { ...input, connections: 8 }

/** Starts a race that runs until the end of the test. Resolves after its first sample. */
async function racing(redis: TestRedis) {
  const demo = await demoOn(redis, { rounds: 1_000 })
  const events = demo.events()
  await demo.send('POST', '/race', input)
  for await (const { name } of { [Symbol.asyncIterator]: () => ({ next: () => events.next() }) }) {
    if (name === 'sample') break
  }
  return { ...demo, rest: events }
}

test('the result of a race is the sum of its turns, and no data is left in Redis', async () => {
  // Prevents failed views on a busy machine.
  vi.stubEnv('REDIS_DEADLINE_MS', '60000')
  vi.stubEnv('MAX_EVENT_LOOP_DELAY_MS', '0')
  onTestFinished(() => void vi.unstubAllEnvs())
  const redis = await redisForThisTest()
  const client = new Redis(redis.socket)
  onTestFinished(() => client.disconnect())
  const { send, events } = await demoOn(redis)
  const seen = eventsUntil(events(), 'done', 'failed')
  const { status, body } = await send('POST', '/race', concurrent)
  expect(status).toBe(202)
  const all = await seen
  const { id } = body as { id: string }
  expect(all[0]).toEqual({ name: 'state', data: { running: false, race: null, last: null } })
  expect(all[1]).toEqual({
    name: 'started',
    data: { id, ...concurrent, rounds: 2, turnSeconds: 0.3 },
  })
  expect(dataOf(all, 'preparing')).toHaveLength(2)
  const turns = dataOf(all, 'turn')
  // The order alternates.
  expect(turns.map(({ lane, round }) => [round, lane])).toEqual([
    [1, 0],
    [1, 1],
    [2, 1],
    [2, 0],
  ])
  const [done] = dataOf(all, 'done') as [Done]
  expect(done.id).toBe(id)
  for (const lane of [0, 1] as const) {
    const own = turns.filter((turn) => turn.lane === lane)
    for (const name of totals) {
      expect(done.lanes[lane]?.[name]).toBeCloseTo(own.reduce((sum, turn) => sum + turn[name], 0))
    }
    expect(dataOf(all, 'sample').filter((sample) => sample.lane === lane)).not.toEqual([])
  }
  const [naive, batch] = done.lanes as [LaneResult, LaneResult]
  expect(naive).toMatchObject({ strategy: 'naive', errors: 0 })
  expect(naive.connectionsOpened).toBe(naive.requests)
  expect(naive.roundTrips).toBe(5 * naive.requests)
  expect(batch).toMatchObject({ strategy: 'batch', errors: 0, connectionsOpened: 0 })
  expect(batch.roundTrips).toBeLessThanOrEqual(batch.requests)
  expect(done.sentence).toMatch(/naive|batch/)
  expect(done.steps).toEqual([])

  expect(await client.keys('*')).toEqual([])
  const [state] = await eventsUntil(events(), 'state')
  expect(state?.data).toEqual({ running: false, race: null, last: done })

  // The next race reuses the lanes, without preparations.
  const next = eventsUntil(events(), 'turn', 'failed')
  await send('POST', '/race', concurrent)
  expect((await next).map(({ name }) => name)).not.toContain('preparing')
})

test('all four strategies take turns, and each step gets a sentence', async () => {
  const redis = await redisForThisTest()
  const { send, events } = await demoOn(redis, { rounds: 2 })
  const seen = eventsUntil(events(), 'done', 'failed')
  const lanes = [...raceLimits.strategies]
  expect((await send('POST', '/race', { ...concurrent, lanes })).status).toBe(202)
  const all = await seen
  const order = dataOf(all, 'turn').map(({ lane }) => lane)
  expect(order).toEqual([0, 1, 2, 3, 3, 2, 1, 0])
  const [done] = dataOf(all, 'done') as [Done]
  expect(done.lanes.map(({ strategy }) => strategy)).toEqual(lanes)
  // naive opens a connection per view; the trips get fewer with each step.
  const trips = done.lanes.map(({ roundTrips, requests }) => roundTrips / requests)
  expect(trips.slice(0, 3)).toEqual([5, 5, 1])
  expect(trips[3]).toBeLessThanOrEqual(1)
  expect(done.steps).toHaveLength(3)
  expect(done.command).toContain('--variants naive,sequential,pipeline,batch --connections 8 ')
})

test('only one race runs at a time; a late listener gets all its events', async () => {
  const { send, events } = await racing(await redisForThisTest())
  expect((await send('POST', '/race', input)).status).toBe(409)
  expect((await send('POST', '/wire', { lanes: input.lanes, distanceMs: 0 })).status).toBe(409)
  const late = await eventsUntil(events(), 'sample')
  expect(late[0]?.data).toMatchObject({ running: true, race: input, last: null })
  const names = late.map(({ name }) => name)
  expect(names).toEqual(['state', 'started', 'preparing', 'preparing', 'sample'])
})

/** The processes that a race on this Redis has started. */
const programsOn = async ({ socket, program }: TestRedis) =>
  (await processesOf(socket)).filter((pid) => pid !== program.pid && pid !== process.pid)

test.for([
  [
    'Redis is killed',
    async ({ program }: TestRedis) => program.signal('SIGKILL'),
    /^Redis (closed the connection|does not answer)/,
  ],
  [
    'Redis is paused',
    async ({ program }: TestRedis) => program.signal('SIGSTOP'),
    /^Redis does not answer/,
  ],
  [
    'the APIs of the lanes are killed',
    async (redis: TestRedis) => {
      for (const pid of await programsOn(redis)) process.kill(pid, 'SIGKILL')
    },
    /the (naive|batch) API exited unexpectedly \(SIGKILL\)/,
  ],
] as const)(
  'if %s, the race fails with a message, and the next one runs',
  async ([, fault, message]) => {
    const redis = await redisForThisTest()
    const { send, events, rest } = await racing(redis)
    await fault(redis)
    const [failed] = dataOf(await eventsUntil(rest, 'done', 'failed'), 'failed')
    expect(failed?.message).toMatch(message)
    redis.program.signal('SIGCONT')
    if (message.source.includes('closed')) await redis.restart()
    expect((await send('POST', '/race', input)).status).toBe(202)
    expect((await eventsUntil(events(), 'turn', 'failed')).at(-1)?.name).toBe('turn')
  },
)

test('closing the service during a race publishes a message, ends the streams and leaves no process', async () => {
  const redis = await redisForThisTest()
  const { rest, service, socket } = await racing(redis)
  const seen = eventsUntil(rest)
  await service.close()
  const [failed] = dataOf(await seen, 'failed') // resolves because the stream has ended
  expect(failed?.message).toContain('stopping')
  await expect.poll(() => programsOn(redis)).toEqual([])
  expect(existsSync(socket)).toBe(false)
})

test('rejects an input with the name of its mistake', async () => {
  const { send } = await demoOn({ socket: '/nowhere/redis.sock' })
  for (const [name, value] of Object.entries({
    lanes: ['bogus'],
    distanceMs: 2,
    connections: 257,
  })) {
    const message = expect.stringContaining(`${name} must`)
    const answer = await send('POST', '/race', { ...input, [name]: value })
    expect(answer).toEqual({ status: 400, body: { message } })
  }
})

test.for([
  ['redis://192.0.2.1:6379', 'Redis is on another machine'],
  ['rediss://127.0.0.1:6379', 'Redis uses TLS'],
] as const)('there is no race on %s', async ([url, why]) => {
  const { send } = await demoOn({ socket: '' }, { url })
  const message = expect.stringContaining(why)
  expect((await send('GET', '/race')).body).toEqual({ race: null, why: message })
  for (const path of ['/race', '/wire']) {
    expect(await send('POST', path, input)).toEqual({ status: 404, body: { message } })
  }
  expect(await send('GET', '/race/events')).toEqual({ status: 404, body: { message } })
})

test('without Redis, a race fails with a message', async () => {
  const { send, events } = await demoOn({ socket: '/nowhere/redis.sock' })
  const seen = eventsUntil(events(), 'failed')
  await send('POST', '/race', input)
  const [failed] = dataOf(await seen, 'failed')
  expect(failed?.message).toMatch(/^The Redis at unix:.* cannot be used: .*ENOENT/)
})
