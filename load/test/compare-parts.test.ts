import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryFolder } from '@onetrip/stack/testing/places.ts'
import { run } from '@onetrip/stack/testing/programs.ts'
import { describe, expect, test } from 'vitest'
import { differencesOf } from '../src/compare/circumstances.ts'
import type { Comparable } from '../src/compare/comparable.ts'
import { judge } from '../src/compare/judge.ts'
import { comparableLatency, comparableStore, type StoreResult } from '../src/compare/parts.ts'
import type { LatencyResult } from '../src/latency/result.ts'
import type { LinkSample } from '../src/store/benchmark.ts'
import { experimentResult, latencyResult } from './report/support/results.ts'

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

test('store: CPU time of a call that grew, unless there are too few calls to tell', () => {
  const before = comparableStore(store())
  expect(verdictsOf(before, comparableStore(store()))).toEqual([])
  expect(verdictsOf(before, comparableStore(store(1.5)))).toEqual([
    'switch, pipeline: Redis CPU µs /call worse',
  ])
  const few = comparableStore(store(1, 10))
  expect(verdictsOf(few, comparableStore(store(1.5, 10)))).toEqual([])
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
    const before = all(latency(), store(), experimentResult())
    const { code, text } = await compare(before, all(latency(), store(1.5)))
    expect(text).toMatch(/^latency, compared with (.|\n)*^store, compared with /m)
    expect(text).toContain('switch, pipeline: Redis CPU µs /call is worse: +50.0 %')
    expect(code).toBe(4)
  })

  test('what cannot be compared fails it, and is told with its part', async () => {
    const other = { ...latency(), options: { ...latency().options, seed: 18 } }
    const { code, text } = await compare(all(latency(), store()), all(other, store()))
    expect(text).toMatch(/^latency: .*old\.json was measured with another load/m)
    expect(text).toMatch(/^store, compared with /m)
    expect(code).toBe(1)
  })

  test('nothing in common is said', async () => {
    const { code, text } = await compare(all(latency()), store())
    expect(text).toMatch(/old\.json is about latency, .*new\.json about store: nothing can be/)
    expect(code).toBe(1)
  })
})
