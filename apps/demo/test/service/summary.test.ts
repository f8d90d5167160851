import { describe, expect, test } from 'vitest'
import type { Pair, Started, Turn } from '../../src/events.ts'
import { summaryOf } from '../../src/service/summary.ts'

const started: Started = {
  id: 'x',
  lanes: ['naive', 'batch'],
  connections: 64,
  distanceMs: 0,
  rounds: 3,
  turnSeconds: 1,
}

const turn = (lane: 0 | 1, round: number, requests: number, errors = 0): Turn => ({
  lane,
  round,
  seconds: 1,
  requests,
  requestsPerSecond: requests,
  errors,
  p50Ms: 1,
  p99Ms: 2,
  connectionsOpened: 1,
  roundTrips: 2,
  commands: 3,
  redisCpuUs: 4,
  apiCpuUs: 5,
})

const three = (naive: readonly number[], batch: readonly number[]) => [
  ...naive.map((requests, index) => turn(0, index + 1, requests)),
  ...batch.map((requests, index) => turn(1, index + 1, requests)),
]

const quiet = { p50Ms: 1, p99Ms: 2, generatorBusy: false }
const lanes: Pair<typeof quiet> = [quiet, quiet]

const sentenceOf = (turns: Turn[], more: object = {}) =>
  summaryOf(started, { turns, lanes, elsewhere: 0.02, ...more })

describe('the sentence', () => {
  test('has the ratio per round, not the ratio of the medians', () => {
    const { ratio, faster, sentence, disturbed } = sentenceOf(
      three([100, 200, 300], [1_000, 2_400, 3_300]),
    )
    expect(ratio).toEqual({ median: 11, lowest: 10, highest: 12 })
    expect([faster, disturbed]).toEqual([1, null])
    expect(sentence).toBe(
      'batch answered 11.0 times as many page views per second as naive (10.0 to 12.0 in three rounds).',
    )
  })

  test('names the faster lane first', () => {
    const { faster, sentence } = sentenceOf(three([200, 200, 200], [100, 100, 100]))
    expect(faster).toBe(0)
    expect(sentence).toMatch(/^naive answered 2.00 times .* as batch/)
  })

  test('claims no difference if the range includes 1', () => {
    const { sentence } = sentenceOf(three([100, 100, 100], [90, 110, 120]))
    expect(sentence).toBe('batch and naive were about as fast (0.900 to 1.20 in three rounds).')
  })

  test('does not call lanes equal because of one disturbed round', () => {
    const { sentence } = sentenceOf(three([100, 100, 100], [1_000, 90, 1_200]))
    expect(sentence).toBe(
      'The rounds disagree. In the median round, batch answered 10.0 times as many page views per second as naive (0.900 to 12.0 in three rounds).',
    )
  })

  test('distinguishes two lanes with the same strategy', () => {
    const same = { ...started, lanes: ['batch', 'batch'] } as const
    const turns = three([100, 100, 100], [200, 200, 200])
    const { sentence } = summaryOf(same, { turns, lanes, elsewhere: null })
    expect(sentence).toMatch(/^batch \(lane 2\) answered 2.00 times .* as batch \(lane 1\) /)
  })

  test('reports failures and disturbances', () => {
    const turns = three([100, 100, 100], [200, 200, 200])
    turns[0] = turn(0, 1, 1_000, 234)
    const { sentence, disturbed } = sentenceOf(turns, { elsewhere: 0.234 })
    expect(sentence).toContain('234 of 1,434 page views failed with naive.')
    expect(disturbed).toMatch(/^Other programs took 23 % of the machine's CPU time/)
    expect(sentence).toContain(disturbed)
  })

  test('reports a saturated load generator', () => {
    const busy = { ...quiet, generatorBusy: true }
    const { sentence } = sentenceOf(three([1, 1, 1], [9, 9, 9]), { lanes: [quiet, busy] })
    expect(sentence).toContain('The load generator was saturated: batch may be faster than this.')
  })

  test('has no ratio if a lane answered no request', () => {
    const { ratio, sentence } = sentenceOf(three([0, 100, 100], [200, 200, 200]))
    expect(ratio).toBeNull()
    expect(sentence).toMatch(/^There is no ratio/)
  })
})
