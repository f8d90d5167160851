import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type Exchange,
  layout,
  spread,
  summaryOf,
  textOf,
  type Wire,
} from '../page/scripts/wire-layout.js'

/** Consecutive round trips of 100 µs, with gaps of 100 µs. */
function trips(...commands: string[][]): Exchange[] {
  return commands.flatMap((lines, index): Exchange[] => {
    const roundTrip = index + 1
    const atUs = 200 + index * 200
    const replies = lines.map(() => ':1')
    return [
      { kind: 'send', atUs, untilUs: atUs + 20, roundTrip, bytes: 30, lines },
      {
        kind: 'receive',
        atUs: atUs + 80,
        untilUs: atUs + 100,
        roundTrip,
        bytes: 4,
        lines: replies,
      },
    ]
  })
}

const exchange = (kind: Exchange['kind'], atUs: number, untilUs: number): Exchange => {
  return { kind, atUs, untilUs, bytes: 0, lines: [] }
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
    exchange('connect', 100, 150),
    ...trips(['HELLO 3'], ['ZADD recent: 1 a'], ['HGET login: a'], ['QUIT']),
    exchange('close', 920, 930),
  ],
  1_000,
)
const batch = wire('batch', trips(['ZADD recent: 1 a', 'HGET login: a']), 350)

describe('the layout', () => {
  const [first, second] = layout([naive, batch])

  test('has one time scale for both lanes', () => {
    expect(first?.pixelsPerUs).toBe(second?.pixelsPerUs)
    expect(first?.ticks).toEqual(second?.ticks)
    expect([first?.endUs, second?.endUs, second?.longestUs]).toEqual([1_000, 350, 1_000])
  })

  test('shows in the faster lane how much later the slower one is answered', () => {
    expect(second?.labels.at(-1)?.title).toBe('naive: 650 µs later')
    expect(first?.labels.at(-1)?.title).toBe('answered after 1 ms')
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
  expect(summaryOf(naive)).toMatch(/^4 round trips \(2 for .*, 1 connection/)
  expect(summaryOf(batch)).toMatch(/^1 round trip, no connections/)
})
