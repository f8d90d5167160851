import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryFolder } from '@onetrip/stack/testing/places.ts'
import { run } from '@onetrip/stack/testing/programs.ts'
import { describe, expect, test } from 'vitest'
import { differencesOf } from '../src/compare/circumstances.ts'
import { baselineOf, readBaseline, requireComparable } from '../src/compare/compare.ts'
import { judge } from '../src/compare/judge.ts'
import { comparableHttp, httpLoad } from '../src/compare/parts.ts'
import type { HttpResult, HttpSettings } from '../src/http/result.ts'
import { latencyResult } from './report/support/results.ts'
import { httpResult, type Rates } from './support/http-results.ts'

// Rounds that differ by some percent, as they do.
const naive = [2_500, 2_550, 2_450, 2_520, 2_480]
const batch = [40_000, 41_000, 39_000, 40_300, 39_800]
const times = (rates: readonly number[], factor: number) => rates.map((rate) => rate * factor)

/** What is said, by `variant: figure`. */
function judged(before: HttpResult, after: HttpResult, threshold = 0.1) {
  const [old, now] = [comparableHttp(before, 'old'), comparableHttp(after, 'new')]
  const { comparisons } = judge(old, now, differencesOf(old, now), threshold)
  return Object.fromEntries(
    comparisons.map(({ row, measure, reference, verdict }) => [
      `${row.variant}: ${measure.name}${reference === null ? '' : ` ÷ ${reference}`}`,
      verdict,
    ]),
  )
}

/** Those of them that are better or worse. */
function changes(before: HttpResult, after: HttpResult, threshold?: number) {
  return Object.fromEntries(
    Object.entries(judged(before, after, threshold)).filter(([, verdict]) =>
      ['better', 'worse'].includes(verdict),
    ),
  )
}

describe('what changed', () => {
  const before = httpResult({ naive, batch })

  test('of the same, nothing', () => {
    expect(changes(before, httpResult({ naive: naive.toReversed(), batch }))).toEqual({})
  })

  test('a variant that got slower than its reference', () => {
    const after = httpResult({ naive, batch: times(batch, 0.8) })
    expect(changes(before, after)).toEqual({ 'batch: requests/s ÷ naive': 'worse' })
    expect(changes(after, before)).toEqual({ 'batch: requests/s ÷ naive': 'better' })
  })

  test('a machine that is slower today is no regression', () => {
    const after = httpResult({ naive: times(naive, 0.6), batch: times(batch, 0.6) })
    expect(changes(before, after)).toEqual({})
    expect(judged(before, after)['batch: requests/s']).toBe('told')
  })

  test('a single variant has no reference and is judged as it is', () => {
    const after = httpResult({ batch: times(batch, 0.8) })
    expect(changes(httpResult({ batch }), after)).toEqual({ 'batch: requests/s': 'worse' })
  })

  test('not what is smaller than the threshold, however sure', () => {
    const after = httpResult({ naive, batch: times(batch, 0.93) })
    expect(changes(before, after)).toEqual({})
    expect(changes(before, after, 0.05)).toEqual({ 'batch: requests/s ÷ naive': 'worse' })
  })

  test('not what the rounds scatter by, however large', () => {
    const wild = [20_000, 60_000, 25_000, 50_000, 22_000]
    const after = httpResult({ naive, batch: wild })
    expect(changes(before, after)).toEqual({})
    expect(judged(before, after)['batch: requests/s ÷ naive']).toBe('unclear')
    expect(judged(before, before)['batch: requests/s ÷ naive']).toBe('same')
  })

  test('CPU time, round trips and connections that grew, of the reference as well', () => {
    const more = ({ perRequest }: HttpResult['samples'][number]) => ({
      perRequest: {
        ...perRequest,
        redisCpuMicros: perRequest.redisCpuMicros * 1.3,
        roundTrips: perRequest.roundTrips * 2,
        connections: perRequest.connections + 1,
      },
    })
    expect(changes(before, httpResult({ naive, batch }, more))).toEqual({
      'naive: Redis CPU µs /request': 'worse',
      'naive: round trips /request': 'worse',
      'naive: connections /request': 'worse',
      'batch: Redis CPU µs /request': 'worse',
      'batch: round trips /request': 'worse',
      'batch: connections /request': 'worse', // from none at all
    })
  })

  test('no rates where the generator was at its limit', () => {
    const limited = httpResult({ naive, batch: times(batch, 0.8) }, (sample) => ({
      generator: { cpuSeconds: 5, utilization: sample.variant === 'batch' ? 0.99 : 0.5 },
    }))
    expect(changes(before, limited)).toEqual({})
    expect(judged(before, limited)['batch: requests/s ÷ naive']).toBe('told')
  })

  test('only counts, if other programs took more of the machine', () => {
    const busy = httpResult({ naive, batch: times(batch, 0.5) }, ({ perRequest }) => ({
      elsewhere: 0.5,
      perRequest: { ...perRequest, apiCpuMicros: 999, roundTrips: perRequest.roundTrips * 2 },
    }))
    expect(changes(before, busy)).toEqual({
      'naive: round trips /request': 'worse',
      'batch: round trips /request': 'worse',
    })
    const [old, now] = [comparableHttp(before, 'old'), comparableHttp(busy, 'new')]
    expect(differencesOf(old, now).disturbance).toEqual([
      'CPU time that went elsewhere: 2.00 %, now 50.0 %',
    ])
  })

  test('nothing, if the load was another one; no CPU time of another machine', () => {
    const after = httpResult({ naive, batch: times(batch, 0.5) }, ({ perRequest }) => ({
      perRequest: { ...perRequest, apiCpuMicros: 999 },
    }))
    const other = { ...after, options: { ...after.options, connections: 8 } }
    expect(new Set(Object.values(judged(before, other)))).toEqual(new Set(['told']))
    const elsewhere = { ...after, machine: { ...after.machine, cpu: 'Xeon' } }
    expect(changes(before, elsewhere)).toEqual({ 'batch: requests/s ÷ naive': 'worse' })
  })
})

test('what differs besides the figures is told', () => {
  const before = httpResult({ naive, batch })
  const after = httpResult({ naive, pipeline: batch }, () => ({}))
  const changed = {
    ...after,
    machine: { ...after.machine, cpu: 'Xeon', node: 'v27.0.0' },
    redis: { ...after.redis, build: 'stock-2', ioThreads: 2 },
    generator: 'autocannon 9.1.0',
    options: { ...after.options, workload: 'documents' as const, duration: 2 },
  }
  const { load, machine, software, extent } = differencesOf(
    comparableHttp(before, 'old'),
    comparableHttp(changed, 'new'),
  )
  expect(load).toEqual(['workload: realistic, now documents', "Redis's I/O threads: 1, now 2"])
  expect(machine).toEqual(['processor: EPYC, now Xeon'])
  expect(software).toEqual([
    'Node: v26.10.0, now v27.0.0',
    'Redis: 8.0.6 patched-1, now 8.0.6 stock-2',
    'version of the generator: autocannon 9.0.0, now autocannon 9.1.0',
  ])
  expect(extent).toEqual(['seconds per run: 5, now 2'])
})

describe('a file', () => {
  async function file(content: string): Promise<string> {
    const path = join(await temporaryFolder(), 'old.json')
    await writeFile(path, content)
    return path
  }

  test('of load all: its part about http', async () => {
    const parts = [latencyResult(), httpResult({ naive, batch })]
    const path = await file(JSON.stringify({ format: 'onetrip-load-all/1', parts }))
    const { parts: read } = await readBaseline(path, 'http')
    expect(read.map(({ comparable }) => [comparable.part, comparable.rounds])).toEqual([
      ['http', 5],
    ])
  })

  test.each([
    ['has nothing that can be compared', '{"format":"onetrip-load-all/1","parts":[]}'],
    ['has no part about http, only about latency', JSON.stringify(latencyResult())],
    ['something in it is not', '{"format":"onetrip-load-latency/1"}'],
    ['Unexpected end of JSON', ''],
    ['has no format', '[]'],
    ['has no format', 'null'],
    ['has nothing that can be compared', '{"format":"onetrip-load-redis/1"}'],
    ['is of the format onetrip/1', '{"format":"onetrip/1"}'],
    ['machine is missing', '{"format":"onetrip-load-http/3"}'],
    ['samples is missing', JSON.stringify({ ...httpResult({ naive }), samples: [] })],
    ['samples[0].variant is missing', JSON.stringify({ ...httpResult({ naive }), samples: [{}] })],
    ['has one round', JSON.stringify(httpResult({ naive: [1] }))],
  ])('that will not do: %s', async (message, content) => {
    await expect(readBaseline(await file(content), 'http')).rejects.toThrow(message)
  })

  test('that is not there: its name', async () => {
    await expect(readBaseline('/no/such.json')).rejects.toThrow('/no/such.json cannot be read: ')
    await expect(readBaseline('/')).rejects.toThrow('/ cannot be read: ')
  })
})

test('what cannot be compared is refused before it is measured', () => {
  const result = httpResult({ naive, batch })
  const baseline = baselineOf('old.json', result)
  const refusal = (change: Partial<HttpSettings>) => () => {
    const wanted = { ...result.options, ...change }
    requireComparable(baseline, { ...wanted, load: httpLoad(wanted) })
  }
  expect(refusal({ rounds: 3, duration: 1 })).not.toThrow()
  expect(refusal({ rounds: 1 })).toThrow('--rounds 2 or more')
  expect(refusal({ variants: ['glide'] })).toThrow('none of the variants glide')
  expect(refusal({ reads: 0 })).toThrow(/another load:\n +reads: 0.2, now 0/)
})

describe('npm run load -- compare', () => {
  async function compare(before: Rates, after: Rates, ...options: string[]) {
    const state = await temporaryFolder()
    const [old, now] = [join(state, 'old.json'), join(state, 'new.json')]
    await writeFile(old, JSON.stringify(httpResult(before)))
    await writeFile(now, JSON.stringify(httpResult(after)))
    const args = ['compare', old, now, ...options]
    const program = await run('cli.ts', { state, args, until: /./ })
    const { code } = await program.exited
    return { code, text: program.output.join('\n') }
  }

  test('exits with 4 when something got worse, and says what', async () => {
    const { code, text } = await compare({ naive, batch }, { naive, batch: times(batch, 0.7) })
    expect(text).toMatch(/^ +requests\/s ÷ naive's +16\.0 +11\.2 +-30\.0 % .* worse$/m)
    expect(text).toMatch(/batch: requests\/s ÷ naive's is worse: -30\.0 %/)
    expect(code).toBe(4)
  })

  test('exits with 0 otherwise, and obeys --threshold', async () => {
    const slower = { naive, batch: times(batch, 0.7) }
    const { code, text } = await compare({ naive, batch }, slower, '--threshold=50')
    expect(text).toContain('none changed by 50.0 % or more beyond noise.')
    expect(code).toBe(0)
  })

  test.each([
    ['none of the variants batch', { naive }, { batch }, []],
    ['--threshold', { naive }, { naive }, ['--threshold=much']],
    ['new.json has one round', { naive }, { naive: [1] }, []],
  ])('refuses: %s', async (message, before, after, options) => {
    const { code, text } = await compare(before, after, ...options)
    expect(text).toContain(message)
    expect(code).toBe(1)
  })
})
