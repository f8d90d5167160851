import { expect, test } from 'vitest'
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

const turnsOf = (lane: 0 | 1, requests: readonly number[]) =>
  requests.map((count, index) => turn(lane, index + 1, count))

const quiet = { p50Ms: 1, p99Ms: 2, generatorBusy: false }
const lanes: Pair<typeof quiet> = [quiet, quiet]

/** The summary of a race with these requests per second in three rounds. */
const summary = (naive: readonly number[], batch: readonly number[], more: object = {}) => {
  const turns = [...turnsOf(0, naive), ...turnsOf(1, batch)]
  return summaryOf(started, { turns, lanes, elsewhere: 0.02, ...more })
}

test.each([
  // The ratio per round, not the ratio of the medians.
  [[100, 200, 300], [1_000, 2_400, 3_300], 1, 11, /^batch answered 11.0 times .* \(10.0 to 12.0/],
  [[200, 200, 200], [100, 100, 100], 0, 2, /^naive answered 2.00 times .* as batch/],
  [[100, 100, 100], [90, 110, 120], 1, 1.1, /^batch and naive were about as fast/],
  [[100, 100, 100], [1_000, 90, 1_200], 1, 10, /^The rounds disagree. .*, batch answered 10.0/],
] as const)('naive %j, batch %j', (naive, batch, faster, median, sentence) => {
  const result = summary(naive, batch)
  expect(result).toMatchObject({ faster, disturbed: null })
  expect(result.ratio?.median).toBeCloseTo(median)
  expect(result.sentence).toMatch(sentence)
})

test('the sentence numbers two lanes that have the same strategy', () => {
  const turns = [...turnsOf(0, [100]), ...turnsOf(1, [200])]
  const same = { ...started, lanes: ['batch', 'batch'] } as const
  const { sentence } = summaryOf(same, { turns, lanes, elsewhere: null })
  expect(sentence).toMatch(/^batch \(lane 2\) .* as batch \(lane 1\) /)
})

test('failures, other programs and a saturated generator are reported', () => {
  const turns = [turn(0, 1, 1_000, 234), ...turnsOf(1, [2_000])]
  const busy = { ...quiet, generatorBusy: true }
  const more = { turns, elsewhere: 0.234, lanes: [quiet, busy] }
  const { sentence, disturbed } = summary([], [], more)
  expect(sentence).toContain('234 of 1,234 page views failed with naive')
  expect(disturbed).toContain('23 %')
  expect(sentence).not.toContain(disturbed)
  expect(sentence).toContain('generator was saturated')
})

test('there is no ratio if a lane answered no request', () => {
  const { ratio, sentence } = summary([0, 100, 100], [200, 200, 200])
  expect(ratio).toBeNull()
  expect(sentence).toMatch(/^There is no ratio/)
})
