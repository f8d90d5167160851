import type { Traffic } from '@onetrip/stack/relay/relay.ts'
import { expect, test } from 'vitest'
import { exchangesOf } from '../../src/service/trace.ts'

const part = (kind: Traffic['kind'], atMs: number, untilMs: number, text?: string): Traffic => ({
  kind,
  connection: 1,
  atMs,
  untilMs,
  ...(text !== undefined && { data: Buffer.from(text) }),
})
const ping = '*1\r\n$4\r\nPING\r\n'

const traced = (...traffic: Traffic[]) =>
  exchangesOf(traffic, { sentAt: 100, sessionId: 'the-session' })

test('a round trip begins after a reply has arrived', () => {
  const { connections, roundTrips, exchanges } = traced(
    part('connect', 101, 103),
    part('requests', 104, 105, ping),
    part('replies', 105, 110, '+PONG\r\n'),
    part('requests', 107, 108, ping), // the reply is still in flight
    part('replies', 108, 113, '+PONG\r\n'),
    part('requests', 114, 115, ping),
    part('replies', 115, 116, '+PONG\r\n'),
    part('close', 117, 118),
  )
  expect([connections, roundTrips]).toEqual([1, 2])
  expect(exchanges.map(({ kind, roundTrip }) => [kind, roundTrip])).toEqual([
    ['connect', undefined],
    ['send', 1],
    ['receive', 1],
    ['send', 1],
    ['receive', 1],
    ['send', 2],
    ['receive', 2],
    ['close', undefined],
  ])
  expect(exchanges[1]).toEqual({
    kind: 'send',
    atUs: 4_000,
    untilUs: 5_000,
    roundTrip: 1,
    bytes: ping.length,
    lines: ['PING'],
  })
})
