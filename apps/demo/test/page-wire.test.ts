import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  clip,
  type Exchange,
  groupsOf,
  layout,
  spread,
  summaryOf,
  textOf,
  ticks,
  type Wire,
  withoutTimes,
} from '../page/scripts/wire-layout.js'

/** Consecutive round trips of 100 µs, with gaps of 100 µs. */
function trips(...commands: string[][]): Exchange[] {
  return commands.flatMap((lines, index): Exchange[] => {
    const roundTrip = index + 1
    const atUs = 200 + index * 200
    return [
      { kind: 'send', atUs, untilUs: atUs + 20, roundTrip, bytes: 30, lines },
      {
        kind: 'receive',
        atUs: atUs + 80,
        untilUs: atUs + 100,
        roundTrip,
        bytes: 4,
        lines: lines.map(() => ':1'),
      },
    ]
  })
}

const wire = (strategy: string, exchanges: Exchange[], endUs: number): Wire => ({
  strategy,
  http: { startUs: 0, endUs },
  connections: exchanges.filter(({ kind }) => kind === 'connect').length,
  roundTrips: exchanges.filter(({ kind }) => kind === 'send').length,
  exchanges,
})

const naive = wire(
  'naive',
  [
    { kind: 'connect', atUs: 100, untilUs: 150, bytes: 0, lines: [] },
    ...trips(['HELLO 3'], ['ZADD recent: 1 a'], ['HGET login: a'], ['QUIT']),
    { kind: 'close', atUs: 920, untilUs: 930, bytes: 0, lines: [] },
  ],
  1_000,
)
const batch = wire('batch', trips(['ZADD recent: 1 a', 'HGET login: a']), 350)

describe('groups', () => {
  test('are the connect, each round trip, and the close', () => {
    expect(groupsOf(naive).map(({ title }) => title)).toEqual([
      'connect, 50 µs',
      ...Array(4).fill('round trip, 100 µs'),
      'close',
    ])
    expect(groupsOf(batch).map(({ kind }) => kind)).toEqual(['trip'])
  })

  test('pair each command with its reply', () => {
    expect(groupsOf(batch)[0]?.lines).toEqual([
      { text: 'ZADD recent: 1 a', reply: ':1' },
      { text: 'HGET login: a', reply: ':1' },
    ])
  })

  test('list commands, then replies, if their numbers differ', () => {
    const [send, receive] = trips(['MULTI', 'EXEC'])
    if (!send || !receive) throw new Error('no exchanges')
    const uneven = wire('x', [send, { ...receive, lines: ['OK'] }], 400)
    expect(groupsOf(uneven)[0]?.lines).toEqual([
      { text: 'MULTI', reply: '' },
      { text: 'EXEC', reply: '' },
      { text: '', reply: 'OK' },
    ])
  })
})

describe('the layout', () => {
  const [first, second] = layout([naive, batch])

  test('has one time scale for both lanes', () => {
    expect(first?.pixelsPerUs).toBe(second?.pixelsPerUs)
    expect(first?.ticks).toEqual(second?.ticks)
    expect(first?.endUs).toBe(1_000)
    expect(second?.endUs).toBe(350)
    expect(second?.longestUs).toBe(1_000)
  })

  test('shows in the faster lane how much later the slower one is answered', () => {
    const titles = second?.labels.map(({ title }) => title)
    expect(titles).toContain('answered after 350 µs')
    expect(titles?.at(-1)).toBe('naive: 650 µs later')
    expect(first?.labels.at(-1)?.title).toBe('answered after 1 ms')
  })

  test('includes exchanges after the response', () => {
    const late: Exchange = { kind: 'close', atUs: 1_500, untilUs: 2_000, bytes: 0, lines: [] }
    const [lane] = layout([wire('naive', [...trips(['PING']), late], 400)])
    expect(lane?.endUs).toBe(2_000)
    expect(lane?.labels.at(-1)?.title).toBe('close')
  })

  test('works for a page view without exchanges', () => {
    const [lane] = layout([wire('noop', [], 100)])
    expect(lane?.labels.map(({ kind }) => kind)).toEqual(['request', 'answer'])
    expect(lane?.height).toBeGreaterThan(0)
  })
})

test('labels do not overlap, stay in order and above the bottom, if they fit', () => {
  const label = fc.record({ y: fc.nat(1_000), height: fc.integer({ min: 17, max: 120 }) })
  void fc.assert(
    fc.property(fc.array(label, { maxLength: 15 }), fc.nat(1_500), (labels, bottom) => {
      const wanted = labels.toSorted((a, b) => a.y - b.y)
      const tops = spread(wanted, bottom)
      const ends = tops.map((top, index) => top + (wanted[index]?.height ?? 0))
      tops.slice(1).forEach((top, index) => {
        expect(top).toBeGreaterThanOrEqual(ends[index] ?? 0)
      })
      const needed = wanted.reduce((sum, { height }) => sum + height + 9, -9)
      if (needed <= bottom && ends.length > 0) {
        expect(tops[0]).toBeGreaterThanOrEqual(0)
        expect(ends.at(-1)).toBeLessThanOrEqual(bottom)
      }
    }),
  )
  expect(spread([{ y: 50, height: 17 }], 500)).toEqual([50])
})

test('ticks are round and at least 64 pixels apart', () => {
  expect(ticks(1_600, 0.3)).toEqual([0, 500, 1_000, 1_500])
  expect(ticks(390_000, 0.00128)).toEqual([
    0, 50_000, 100_000, 150_000, 200_000, 250_000, 300_000, 350_000,
  ])
  expect(ticks(10, 0.01)).toEqual([0])
})

test('a page view as text has every step with its time', () => {
  expect(textOf(naive)).toEqual([
    'after 100 µs: connect, 50 µs',
    'after 200 µs: round trip 1, 100 µs; HELLO 3 → :1',
    'after 400 µs: round trip 2, 100 µs; ZADD recent: 1 a → :1',
    'after 600 µs: round trip 3, 100 µs; HGET login: a → :1',
    'after 800 µs: round trip 4, 100 µs; QUIT → :1',
    'after 920 µs: close',
    'after 1 ms: answered',
  ])
  expect(summaryOf(naive)).toBe(
    '4 round trips (2 for connection setup and QUIT), 1 connection opened',
  )
  expect(summaryOf(batch)).toBe('1 round trip, no connections opened')
})

test('only times in commands are replaced', () => {
  expect(withoutTimes('ZADD viewed:<session> 1795255200.25 item-1795')).toBe(
    'ZADD viewed:<session> <now> item-1795',
  )
})

test('clip cuts to a number of characters', () => {
  expect(clip('ZADD', 4)).toBe('ZADD')
  expect(clip('ZADD recent:', 6)).toBe('ZADD …')
  expect(clip('ZADD', 0)).toBe('…')
})
