import { expect, test } from 'vitest'
import type { Started, Turn } from '../../src/events.ts'
import { commandOf } from '../../src/service/race.ts'
import { summaryOf } from '../../src/service/summary.ts'

const started: Started = {
  id: 'x',
  lanes: ['naive', 'batch'],
  connections: 64,
  distanceMs: 0,
  rounds: 3,
  turnSeconds: 1,
}

const turn = (lane: number, round: number, requests: number, errors = 0): Turn => ({
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

const turnsOf = (lane: number, requests: readonly number[]) =>
  requests.map((count, index) => turn(lane, index + 1, count))

const quiet = { p50Ms: 1, p99Ms: 2, generatorBusy: false }
const lanes = [quiet, quiet]

/** The summary of a race with these requests per second in three rounds. */
const summary = (naive: readonly number[], batch: readonly number[], more: object = {}) => {
  const turns = [...turnsOf(0, naive), ...turnsOf(1, batch)]
  return summaryOf(started, { turns, lanes, elsewhere: 0.02, ...more })
}

test.each([
  // The ratio per round, not the ratio of the medians.
  [[100, 200, 300], [1_000, 2_400, 3_300], /^batch answered 11.0 times .* \(10.0 to 12.0/, 11],
  [[200, 200, 200], [100, 100, 100], /^naive answered 2.00 times .* as batch/, 0.5],
  [[100, 100, 100], [90, 110, 120], /^batch and naive were about as fast/, 1.1],
  [[100, 100, 100], [1_000, 90, 1_200], /^The rounds disagree. .*, batch answered 10.0/, 10],
] as const)('naive %j, batch %j', (naive, batch, sentence, ratio) => {
  const result = summary(naive, batch)
  expect(result).toMatchObject({ disturbed: null, steps: [] })
  expect(result.sentence).toMatch(sentence)
  expect(result.ratio?.median).toBeCloseTo(Number(ratio))
})

test('the sentence numbers two lanes that have the same strategy', () => {
  const turns = [...turnsOf(0, [100]), ...turnsOf(1, [200])]
  const same = { ...started, lanes: ['batch', 'batch'] }
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
  const { sentence, ratio } = summary([0, 100, 100], [200, 200, 200])
  expect(sentence).toMatch(/^There is no ratio/)
  expect(ratio).toBeNull()
})

test('with four lanes, the sentence compares the first with the last, and each step its neighbours', () => {
  const four = { ...started, lanes: ['naive', 'sequential', 'pipeline', 'batch'] }
  const turns = [100, 500, 500, 900].flatMap((rate, lane) => turnsOf(lane, [rate, rate]))
  const measured = { turns, lanes: [quiet, quiet, quiet, quiet], elsewhere: null }
  const { sentence, steps } = summaryOf(four, measured)
  expect(sentence).toMatch(/^batch answered 9.00 times as many .* as naive/)
  expect(steps).toEqual([
    expect.stringMatching(/^sequential answered 5.00 times as many .* as naive/),
    expect.stringMatching(/^sequential and pipeline were about as fast/),
    expect.stringMatching(/^batch answered 1.80 times as many .* as pipeline/),
  ])
})

test.each([
  [['naive', 'batch'], 0, 'http --variants naive,batch --connections 64 --sessions 64 '],
  [['batch', 'batch'], 0, 'http --variants batch --connections 64 '],
  [['naive', 'pipeline'], 0.3, ' --links 0.3ms@unlimited'],
])('the command of a race: %j, %s ms', (lanes, distanceMs, part) => {
  expect(commandOf({ lanes, connections: 64, distanceMs })).toContain(part)
})
