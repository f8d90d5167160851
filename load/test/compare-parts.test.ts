import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { describe, expect, test } from 'vitest'
import { differencesOf } from '../src/compare/circumstances.ts'
import type { Comparable } from '../src/compare/comparable.ts'
import { judge } from '../src/compare/judge.ts'
import { comparableScaling, comparableStore, type StoreResult } from '../src/compare/parts.ts'
import type { ScalingResult } from '../src/scaling/result.ts'
import type { LinkSample } from '../src/store/benchmark.ts'
import { experimentResult, scalingResult } from './report/support/results.ts'
import { httpResult } from './support/http-results.ts'
import { runLoad } from './support/run.ts'

// Rounds that differ by some percent, as they do.
const scatter = [1, 1.02, 0.98, 1.01, 0.99]
const rounds = <T>(take: (factor: number, round: number) => T): T[] =>
  scatter.map((factor, index) => take(factor, index + 1))

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

/** @param dearer by this factor is a pipeline's CPU time in Redis; @param calls of a run. */
function store(dearer = 1, calls = 1_000): StoreResult {
  const samples = (['sequential', 'pipeline'] as const).flatMap((strategy) =>
    rounds((factor, round): LinkSample => {
      const redis = 20 * factor * (strategy === 'pipeline' ? dearer : 1)
      return {
        ...{ link: 'switch', strategy, poolSize: 1, ioThreads: 1, round, calls, allCalls: calls },
        ...{ seconds: 1, callsPerSecond: calls * factor, latency: { p50: 1, p99: 2, max: 3 } },
        ...{ clientCpuMicros: 50 * factor, redisCpuMicros: redis, redisMainCpuMicros: redis },
      }
    }),
  )
  const options = { operation: 'update-token', concurrency: 1, duration: 1, rounds: 5 }
  return { ...experimentResult({ experiment: 'store', options }), samples } as StoreResult
}

function verdictsOf(before: Comparable, after: Comparable, verdicts = ['better', 'worse']) {
  const { comparisons } = judge(before, after, differencesOf(before, after), 0.1)
  return comparisons
    .filter(({ verdict }) => verdicts.includes(verdict))
    .map(({ row, measure, verdict }) => `${row.where}, ${row.variant}: ${measure.name} ${verdict}`)
}

test('scaling: a rate that fell, at one point', () => {
  const before = comparableScaling(scaling())
  expect(verdictsOf(before, comparableScaling(scaling()))).toEqual([])
  expect(verdictsOf(before, comparableScaling(scaling(1.5)))).toEqual([
    '64 connections, batch: requests/s worse',
  ])
})

test('store: CPU time of a call that grew, unless there are too few calls to tell', () => {
  const before = comparableStore(store())
  expect(verdictsOf(before, comparableStore(store()))).toEqual([])
  expect(verdictsOf(before, comparableStore(store(1.5)))).toEqual([
    'switch, pipeline: Redis CPU µs /call worse',
  ])
  const few = comparableStore(store(1, 10))
  expect(verdictsOf(few, comparableStore(store(1.5, 10)))).toEqual([])
})

test('the more figures, the wider the intervals', () => {
  const confidenceOf = (one: Comparable) => judge(one, one, differencesOf(one, one), 0.1).confidence
  expect(confidenceOf(comparableStore(store()))).toBe(0.99)
  expect(confidenceOf(comparableScaling(scaling()))).toBeGreaterThan(0.99)
})

describe('files of load all', () => {
  const all = (...parts: object[]) => ({ format: 'onetrip-load-all/1', parts, failures: [] })

  async function compare(before: object, after: object) {
    const state = await temporaryFolder()
    const paths = [join(state, 'old.json'), join(state, 'new.json')] as const
    await writeFile(paths[0], JSON.stringify(before))
    await writeFile(paths[1], JSON.stringify(after))
    const program = await runLoad({ state, args: ['compare', ...paths], until: /./ })
    return { ...(await program.exited), text: program.output.join('\n') }
  }

  test('every part that both have is compared', async () => {
    const before = all(store(), scaling(), experimentResult())
    const { code, text } = await compare(before, all(store(), scaling(1.5)))
    expect(text).toMatch(/^store, compared with (.|\n)*^scaling, compared with /m)
    expect(text).toContain("64 connections, batch: requests/s ÷ naive's is worse: -33.3 %")
    expect(code).toBe(4)
  })

  test('what cannot be compared fails it, and is told with its part', async () => {
    const other = { ...scaling(), options: { ...scaling().options, seed: 18 } }
    const { code, text } = await compare(all(scaling(), store()), all(other, store()))
    expect(text).toMatch(/^scaling: .*old\.json was measured with another load/m)
    expect(text).toMatch(/^store, compared with /m)
    expect(code).toBe(1)
  })

  test('nothing in common is said', async () => {
    const { code, text } = await compare(all(scaling()), store())
    expect(text).toMatch(/old\.json is about scaling, .*new\.json about store: nothing can be/)
    expect(code).toBe(1)
  })
})
