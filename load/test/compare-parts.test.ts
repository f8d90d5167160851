import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryFolder } from '@onetrip/stack/testing/places.ts'
import { run } from '@onetrip/stack/testing/programs.ts'
import { describe, expect, test } from 'vitest'
import { differencesOf } from '../src/compare/circumstances.ts'
import type { Comparable } from '../src/compare/comparable.ts'
import { judge } from '../src/compare/judge.ts'
import { comparableLatency, comparableScaling } from '../src/compare/parts.ts'
import type { LatencyResult } from '../src/latency/result.ts'
import type { ScalingResult } from '../src/scaling/result.ts'
import { experimentResult, latencyResult, scalingResult } from './report/support/results.ts'
import { httpResult } from './support/http-results.ts'

// Rounds that differ by some percent, as they do.
const scatter = [1, 1.02, 0.98, 1.01, 0.99]
const rounds = <T>(take: (factor: number, round: number) => T): T[] =>
  scatter.map((factor, index) => take(factor, index + 1))

/** @param slower by this factor is a batch of what its p99 was. */
function latency(slower = 1, rateFactor = 1): LatencyResult {
  const result = latencyResult()
  const samples = result.samples.flatMap((sample) =>
    rounds((factor, round) => ({
      ...sample,
      ...{ round, rate: sample.rate * rateFactor },
      latency: {
        ...sample.latency,
        p50: (sample.latency.p50 ?? 0) * factor,
        p99: (sample.latency.p99 ?? 0) * factor * (sample.variant === 'batch' ? slower : 1),
      },
      perRequest: { ...sample.perRequest, redisCpuMicros: 10 * factor },
    })),
  )
  const summaries = result.summaries.map((row) => ({ ...row, rate: row.rate * rateFactor }))
  return { ...result, summaries, samples }
}

/** @param slower by this factor is a batch over 64 connections. */
function scaling(slower = 1): ScalingResult {
  const result = scalingResult()
  const series = result.series.map((one) => ({
    ...one,
    samples: one.points.flatMap(({ connections, workers, link }) => {
      const factor = one.by === 'connections' && connections === 64 ? slower : 1
      const rates = (rate: number) => scatter.map((each) => rate * each)
      const { samples } = httpResult({ naive: rates(2_500), batch: rates(40_000 / factor) })
      return samples.map((sample) => ({ ...sample, connections, workers, link }))
    }),
  }))
  return { ...result, series }
}

function verdictsOf(before: Comparable, after: Comparable, verdicts = ['better', 'worse']) {
  const { comparisons } = judge(before, after, differencesOf(before, after), 0.1)
  return comparisons
    .filter(({ verdict }) => verdicts.includes(verdict))
    .map(({ row, measure, verdict }) => `${row.where}, ${row.variant}: ${measure.name} ${verdict}`)
}

describe('latency', () => {
  const before = comparableLatency(latency())

  test('of the same, nothing changed', () => {
    expect(verdictsOf(before, comparableLatency(latency()))).toEqual([])
  })

  test('a percentile that grew, at each rate', () => {
    expect(verdictsOf(before, comparableLatency(latency(1.5)))).toEqual([
      '900 requests/s (30 %), batch: p99 ms worse',
      '2,100 requests/s (70 %), batch: p99 ms worse',
    ])
  })

  test('the same shares of about the same capacity are compared, those of another are not', () => {
    expect(verdictsOf(before, comparableLatency(latency(1.5, 1.05)))).toHaveLength(2)
    const other = comparableLatency(latency(1.5, 1.3))
    expect(verdictsOf(before, other, ['better', 'worse', 'same', 'unclear'])).toEqual([])
    expect(differencesOf(before, other).rates).toEqual([
      '900 requests/s (30 %), now 1,170 requests/s (30 %)',
      '2,100 requests/s (70 %), now 2,730 requests/s (70 %)',
    ])
  })

  test('rows that nothing is claimed from are told', () => {
    const doubtful = latency(1.5)
    for (const row of doubtful.summaries) row.doubts = ['pacer late']
    expect(verdictsOf(before, comparableLatency(doubtful))).toEqual([])
  })
})

test('scaling: a rate that fell, at one point', () => {
  const before = comparableScaling(scaling())
  expect(verdictsOf(before, comparableScaling(scaling()))).toEqual([])
  expect(verdictsOf(before, comparableScaling(scaling(1.5)))).toEqual([
    '64 connections, batch: requests/s worse',
  ])
})

test('the more figures, the wider the intervals', () => {
  const confidenceOf = (one: Comparable) => judge(one, one, differencesOf(one, one), 0.1).confidence
  expect(confidenceOf(comparableScaling(scaling()))).toBeGreaterThan(0.99)
})

describe('files of load all', () => {
  const all = (...parts: object[]) => ({ format: 'onetrip-load-all/1', parts, failures: [] })

  async function compare(before: object, after: object) {
    const state = await temporaryFolder()
    const paths = [join(state, 'old.json'), join(state, 'new.json')] as const
    await writeFile(paths[0], JSON.stringify(before))
    await writeFile(paths[1], JSON.stringify(after))
    const program = await run('cli.ts', { state, args: ['compare', ...paths], until: /./ })
    return { ...(await program.exited), text: program.output.join('\n') }
  }

  test('every part that both have is compared', async () => {
    const before = all(latency(), scaling(), experimentResult())
    const { code, text } = await compare(before, all(latency(), scaling(1.5)))
    expect(text).toMatch(/^latency, compared with (.|\n)*^scaling, compared with /m)
    expect(text).toContain("64 connections, batch: requests/s ÷ naive's is worse: -33.3 %")
    expect(code).toBe(4)
  })

  test('what cannot be compared fails it, and is told with its part', async () => {
    const other = { ...latency(), options: { ...latency().options, seed: 18 } }
    const { code, text } = await compare(all(latency(), scaling()), all(other, scaling()))
    expect(text).toMatch(/^latency: .*old\.json was measured with another load/m)
    expect(text).toMatch(/^scaling, compared with /m)
    expect(code).toBe(1)
  })

  test('nothing in common is said', async () => {
    const { code, text } = await compare(all(latency()), scaling())
    expect(text).toMatch(/old\.json is about latency, .*new\.json about scaling: nothing can be/)
    expect(code).toBe(1)
  })
})
