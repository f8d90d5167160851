import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import type { Exchange, Wire } from '../../src/events.ts'
import { demoOn } from './demo-service.ts'

const kindsOf = ({ exchanges }: Wire) => exchanges.map(({ kind }) => kind)

const sendsOf = ({ exchanges }: Wire) => exchanges.filter(({ kind }) => kind === 'send')

const commandsOf = (wire: Wire) => sendsOf(wire).map(({ lines }) => lines)

const tripsOf = (wire: Wire) => [...new Set(sendsOf(wire).map(({ roundTrip }) => roundTrip))]

const numbered = (count: number) => Array.from({ length: count }, (_, index) => index + 1)

/** The commands of a view as in Redis in Action, without the time. */
const view = [
  'ZADD recent: XX <time> <session>',
  'ZADD viewed:<session> <time> race-item-1',
  'ZREMRANGEBYRANK viewed:<session> 0 -26',
  'ZINCRBY viewed: -1 race-item-1',
  'HGET login: <session>',
]
const withoutTime = (line: string) => line.replace(/ \d{10}(\.\d+)? /, ' <time> ')

/** Each exchange arrives after it left, and no reply leaves before its command arrived. */
function expectInOrder({ exchanges, http }: Wire) {
  let last: Exchange | undefined
  for (const exchange of exchanges) {
    expect(exchange.untilUs).toBeGreaterThanOrEqual(exchange.atUs)
    expect(exchange.atUs).toBeGreaterThanOrEqual(last?.atUs ?? 0)
    last = exchange
  }
  expect(http.startUs).toBe(0)
  const reply = exchanges.findLast(({ kind }) => kind === 'receive')
  expect(http.endUs).toBeGreaterThan(reply?.untilUs ?? Number.POSITIVE_INFINITY)
}

test('naive connects, sends one command per round trip, and Redis closes; batch needs one round trip', async () => {
  const password = 'the-password-of-redis'
  const redis = await redisForThisTest({ config: { requirepass: password } })
  const { send } = await demoOn(redis, { password })
  const { body } = await send('POST', '/wire', { lanes: ['naive', 'batch'], distanceMs: 0 })
  const [naive, batch] = (body as { lanes: [Wire, Wire] }).lanes
  expect([naive.strategy, naive.connections]).toEqual(['naive', 1])
  expect(kindsOf(naive)[0]).toBe('connect')
  expect(kindsOf(naive).at(-1)).toBe('close')
  const trips = commandsOf(naive)
  const first = trips.findIndex(([line]) => line?.startsWith('ZADD recent:'))
  // On a busy machine, the commands of the greeting may leave in more pieces than it has round trips.
  expect(tripsOf(naive)).toEqual(numbered(naive.roundTrips))
  const greeting = trips.slice(0, first).flatMap((lines) => lines.map((line) => line.split(' ')[0]))
  expect(greeting).toEqual(['HELLO', 'CLIENT', 'CLIENT', 'INFO'])
  const own = trips.slice(first, first + 5)
  expect(own.map((lines) => lines.map(withoutTime))).toEqual(view.map((line) => [line]))
  expect(trips.slice(first + 5)).toEqual([['QUIT']])
  const { roundTrips } = naive
  expect(
    sendsOf(naive)
      .slice(first)
      .map(({ roundTrip }) => roundTrip),
  ).toEqual(
    numbered(roundTrips).slice(-6), // the view and QUIT: each has its own
  )
  expectInOrder(naive)

  expect([batch.strategy, batch.connections, batch.roundTrips]).toEqual(['batch', 0, 1])
  expect(kindsOf(batch)).toEqual(['send', 'receive'])
  const [sent, received] = batch.exchanges
  expect(sent?.lines.map(withoutTime)).toEqual(view)
  expect(received?.lines).toHaveLength(5)
  expect(received?.lines.at(-1)).toBe('demo-race-1')
  expectInOrder(batch)

  // Passwords, tokens and session ids are hidden.
  const text = JSON.stringify(body)
  expect(text).toContain('HELLO 3 AUTH default ***')
  expect(text).not.toContain(password)
  expect(text).not.toMatch(/[A-Za-z0-9_-]{32}/) // the format of ids and signatures
})

test('the distance is added to each round trip; without Redis, a trace is rejected', async () => {
  const redis = await redisForThisTest()
  const { send } = await demoOn(redis)
  const lanes = ['sequential', 'pipeline']
  const { body } = await send('POST', '/wire', { lanes, distanceMs: 5 })
  const [sequential, pipeline] = (body as { lanes: [Wire, Wire] }).lanes
  expect([sequential.connections, sequential.roundTrips]).toEqual([0, 5])
  expect(pipeline.roundTrips).toBe(1)
  for (const wire of [sequential, pipeline]) {
    for (const { atUs, untilUs } of wire.exchanges) {
      expect(untilUs - atUs).toBeGreaterThanOrEqual(2_400)
    }
    expect(wire.http.endUs).toBeGreaterThanOrEqual(4_900 * wire.roundTrips)
    expectInOrder(wire)
  }
  redis.program.signal('SIGKILL')
  await redis.program.exited
  expect((await send('POST', '/wire', { lanes, distanceMs: 0 })).status).toBe(503)
})
