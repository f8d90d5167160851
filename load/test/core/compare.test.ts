import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { describe, expect, test } from 'vitest'
import { requireComparable } from '../../src/comparing/compare.ts'
import { differencesOf, judge } from '../../src/comparing/judge.ts'
import type { Result, Sample } from '../../src/experiment/result.ts'
import { Rows } from '../../src/experiment/rows.ts'
import { http } from '../../src/experiments/http/http.ts'
import { httpSamples, resultOf } from '../support/result.ts'
import { runLoad } from '../support/run.ts'

// Rounds that differ by a few percent.
const naive = [2_500, 2_550, 2_450, 2_520, 2_480]
const batch = [40_000, 41_000, 39_000, 40_300, 39_800]
const times = (rates: readonly number[], factor: number) => rates.map((rate) => rate * factor)

const httpResult = (
  rates: Record<string, readonly number[]>,
  more?: (variant: string) => Partial<Sample>,
  change?: Partial<Result>,
) => resultOf(http, httpSamples(rates, more), change)

function compared(before: Result, after: Result, tolerance = 0.1) {
  const [old, now] = [Rows.of(http, before.samples), Rows.of(http, after.samples)] as const
  const differences = differencesOf(http, before, after)
  return { differences, ...judge(old, now, differences, tolerance) }
}

/** The verdicts, by `variant: metric`. */
function judged(before: Result, after: Result, tolerance?: number) {
  return Object.fromEntries(
    compared(before, after, tolerance).comparisons.map(({ row, metric, reference, verdict }) => [
      `${row.subject}: ${metric.label}${reference === undefined ? '' : ` ÷ ${reference.subject}`}`,
      verdict,
    ]),
  )
}

/** The verdicts that are better or worse. */
const changes = (...args: Parameters<typeof judged>) =>
  Object.fromEntries(
    Object.entries(judged(...args)).filter(([, verdict]) => /better|worse/.test(verdict)),
  )

describe('judge', () => {
  const before = httpResult({ naive, batch })

  test('finds no change between equal results', () => {
    expect(changes(before, httpResult({ naive: naive.toReversed(), batch }))).toEqual({})
  })

  test('finds a variant that got slower relative to its baseline', () => {
    const after = httpResult({ naive, batch: times(batch, 0.8) })
    expect(changes(before, after)).toEqual({ 'batch: requests/s ÷ naive': 'worse' })
    expect(changes(after, before)).toEqual({ 'batch: requests/s ÷ naive': 'better' })
  })

  test('ignores that the machine is slower', () => {
    const after = httpResult({ naive: times(naive, 0.6), batch: times(batch, 0.6) })
    expect(changes(before, after)).toEqual({})
    expect(judged(before, after)).not.toHaveProperty('batch: requests/s')
  })

  test('compares absolute rates of a single variant, which has no baseline', () => {
    const after = httpResult({ batch: times(batch, 0.8) })
    expect(changes(httpResult({ batch }), after)).toEqual({ 'batch: requests/s': 'worse' })
  })

  test('takes a baseline that both results have', () => {
    const slower = times(batch, 0.5)
    const after = httpResult({ naive, pipeline: batch, batch: slower })
    expect(changes(httpResult({ pipeline: batch, batch }), after)).toEqual({
      'batch: requests/s ÷ pipeline': 'worse',
    })
  })

  test.each([
    ['the newer', httpResult({ batch }), httpResult({ naive, batch: times(batch, 0.5) })],
    ['the older', before, httpResult({ batch: times(batch, 0.5) })],
    ['each', before, httpResult({ pipeline: naive, batch: times(batch, 0.5) })],
  ])('does not compare rates if only %s result has another variant', (_, old, now) => {
    expect(changes(old, now)).toEqual({})
    expect(judged(old, now)).not.toHaveProperty('batch: requests/s')
  })

  test('ignores changes below the tolerance', () => {
    const after = httpResult({ naive, batch: times(batch, 0.93) })
    expect(changes(before, after)).toEqual({})
    expect(changes(before, after, 0.05)).toEqual({ 'batch: requests/s ÷ naive': 'worse' })
  })

  test('ignores large changes within the variation of the rounds', () => {
    const wild = [20_000, 60_000, 25_000, 50_000, 22_000]
    const after = httpResult({ naive, batch: wild })
    expect(changes(before, after)).toEqual({})
    expect(judged(before, after)['batch: requests/s ÷ naive']).toBe('?')
    expect(judged(before, before)['batch: requests/s ÷ naive']).toBe('=')
  })

  test('finds increased CPU time, round trips and connections, also of the baseline', () => {
    const more = { values: { redisCpuMicros: 400, roundTrips: 10, connections: 2 } }
    const worse = (variant: string) => ({
      [`${variant}: Redis CPU µs /request`]: 'worse',
      [`${variant}: round trips /request`]: 'worse',
      [`${variant}: Redis connections /request`]: 'worse', // batch had none before
    })
    expect(
      changes(
        before,
        httpResult({ naive, batch }, () => more),
      ),
    ).toEqual({
      ...worse('naive'),
      ...worse('batch'),
    })
  })

  test('does not compare rates if the generator was the bottleneck', () => {
    const limited = httpResult({ naive, batch: times(batch, 0.8) }, (variant) =>
      variant === 'batch' ? { doubts: ['generator'] } : {},
    )
    expect(changes(before, limited)).toEqual({})
    expect(judged(before, limited)).not.toHaveProperty('batch: requests/s ÷ naive')
  })

  test('compares only counts if other programs used more CPU time', () => {
    const values = { apiCpuMicros: 999, roundTrips: 10 }
    const rates = { naive, batch: times(batch, 0.5) }
    const busy = httpResult(rates, () => ({ values }), { elsewhere: 0.5 })
    expect(changes(before, busy)).toEqual({
      'naive: round trips /request': 'worse',
      'batch: round trips /request': 'worse',
    })
    expect(compared(before, busy).differences.disturbance).toEqual([
      'CPU time of other programs: 2.00 %, now 50.0 %',
    ])
  })

  test('does not compare CPU time of different machines', () => {
    const rates = { naive, batch: times(batch, 0.5) }
    const more = () => ({ values: { apiCpuMicros: 999 } })
    const machine = { ...before.machine, cpu: 'Xeon' }
    expect(changes(before, httpResult(rates, more, { machine }))).toEqual({
      'batch: requests/s ÷ naive': 'worse',
    })
  })

  test('has wider intervals with more comparisons', () => {
    const many = Array.from({ length: 6 }, (_, index) => [`v${index}`, batch])
    const all = httpResult(Object.fromEntries([['naive', naive], ...many]))
    expect(compared(before, before).confidence).toBe(0.99)
    expect(compared(all, all).confidence).toBeGreaterThan(0.99)
  })
})

test('lists differences in load, machine and software', () => {
  const before = httpResult({ naive, batch })
  const after = httpResult({ naive, pipeline: batch }, undefined, {
    machine: { ...before.machine, cpu: 'Xeon', node: 'v27.0.0' },
    software: { Redis: '8.0.6 stock-2', Generator: 'autocannon 9.1.0' },
    load: { 'way to Redis': 'unix' },
    options: { ...before.options, workload: 'articles', duration: 2 },
  })
  expect(compared(before, after).differences).toEqual({
    load: ['workload: none, now articles', 'way to Redis: tcp, now unix'],
    machine: ['processor: EPYC, now Xeon'],
    software: [
      'Redis: 8.0.6 patched-1, now 8.0.6 stock-2',
      'Generator: autocannon 9.0.0, now autocannon 9.1.0',
      'Node: v26.10.0, now v27.0.0',
    ],
    disturbance: [],
  })
})

test('different I/O threads are a different load, unless they are a factor', () => {
  const withThreads = (threads: string | number) =>
    httpResult({ naive, batch }, undefined, { load: { "Redis's I/O threads": threads } })
  const load = (before: string | number, after: string | number) =>
    compared(withThreads(before), withThreads(after)).differences.load
  expect(load(1, 3)).toEqual(["Redis's I/O threads: 1, now 3"])
  expect(load(3, 3)).toEqual([])
  expect(load('1, 3', '1, 2, 3')).toEqual([])
  expect(load(1, '1, 3')).toEqual([])
})

test('rejects a comparison before the measurement', () => {
  const result = httpResult({ naive, batch })
  const refusal =
    (change: object, of = result) =>
    () =>
      requireComparable(
        { name: 'old.json', experiment: http, result: of },
        { rounds: 3, duration: 5, ...of.options, ...change },
      )
  expect(refusal({ duration: 1 })).not.toThrow()
  expect(refusal({ rounds: 1 })).toThrow('--rounds 2 or more')
  expect(refusal({ seed: 18 })).toThrow(/a different load.*\n +seed: 17, now 18/)
  expect(refusal({}, httpResult({ naive: [1] }))).toThrow('old.json has only one round')
})

describe('npm run load -- compare', () => {
  async function compare(before: object, after: object, ...options: string[]) {
    const state = await temporaryFolder()
    const [old, now] = [join(state, 'old.json'), join(state, 'new.json')]
    await writeFile(old, JSON.stringify(before))
    await writeFile(now, JSON.stringify(after))
    const args = ['compare', old, now, ...options]
    const program = await runLoad({ state, args, until: /./ })
    const { code } = await program.exited
    return { code, text: program.output.join('\n') }
  }

  test('exits with 4 and prints the regression', async () => {
    const after = httpResult({ naive, batch: times(batch, 0.7) })
    const { code, text } = await compare(httpResult({ naive, batch }), after)
    expect(text).toMatch(/^batch +requests\/s ÷ naive's +16\.0 +11\.2 +-30\.0 % .* worse *$/m)
    expect(text).toMatch(/^Of \d+ figures, 1 got worse and 0 better by 10\.0 % or more/m)
    expect(code).toBe(4)
  })

  test('reports new errors as a regression, and lists missing cases', async () => {
    const failing = httpSamples({ naive, batch }, (variant) =>
      variant === 'batch' ? { errors: { 503: 7 } } : {},
    )
    const before = httpResult({ naive, batch, pipeline: batch })
    const { code, text } = await compare(before, resultOf(http, failing))
    expect(text).toMatch(/^New errors:\n {2}batch: 503: 35$/m)
    expect(text).toMatch(/^Only in old\.json:\n {2}pipeline$/m)
    expect(code).toBe(4)
  })

  test('exits with 0 without a regression of --tolerance', async () => {
    const after = httpResult({ naive, batch: times(batch, 0.7) })
    const { code, text } = await compare(httpResult({ naive, batch }), after, '--tolerance=50')
    expect(text).toMatch(/0 got worse and 0 better by 50\.0 % or more/)
    expect(code).toBe(0)
  })

  test.each([
    ['have no case in common', { naive }, { batch }, []],
    ['--tolerance', { naive }, { naive }, ['--tolerance=much']],
    ['new.json has only one round', { naive }, { naive: [1] }, []],
  ])('rejects: %s', async (message, before, after, options) => {
    const { code, text } = await compare(httpResult(before), httpResult(after), ...options)
    expect(text).toContain(message)
    expect(code).toBe(1)
  })

  test('rejects a different load and lists the differences', async () => {
    const options = { ...httpResult({ naive }).options, seed: 18 }
    const other = httpResult({ naive }, undefined, { options })
    const { code, text } = await compare(httpResult({ naive }), other)
    expect(text).toContain('seed: 17, now 18')
    expect(code).toBe(1)
  })
})
