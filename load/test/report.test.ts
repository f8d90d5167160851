import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import { conclusion, header, latencyTable, ratioTable, table } from '../src/http/report.ts'
import type { HttpSettings } from '../src/http/result.ts'
import { summarizeSamples } from '../src/http/summary.ts'
import { errorKinds, figure } from '../src/table.ts'
import { sample } from './support/samples.ts'

const options: HttpSettings = {
  connections: 64,
  duration: 5,
  rounds: 2,
  variants: ['naive', 'pipeline'],
  generator: 'autocannon',
  warmup: 2,
  workload: 'realistic',
  sessions: 1000,
  items: 1000,
  reads: 0.2,
  seed: 17,
}

const samples = [
  sample({ variant: 'naive', round: 1, requestsPerSecond: 2_500 }),
  sample({ variant: 'pipeline', round: 1, requestsPerSecond: 20_000 }),
  sample({ variant: 'pipeline', round: 2, requestsPerSecond: 15_000 }),
  sample({ variant: 'naive', round: 2, requestsPerSecond: 1_500 }),
]

const rowOf = (text: string, variant: string) =>
  text.split('\n').find((line) => line.startsWith(variant)) ?? ''

describe('the summary', () => {
  test('has medians over the rounds, and ratios within them', () => {
    const [naive, pipeline] = summarizeSamples(samples, options.variants)
    expect(naive).toMatchObject({ ratios: {}, requestsPerSecond: { median: 2_000 } })
    expect(pipeline).toMatchObject({
      requestsPerSecond: { median: 17_500, min: 15_000, max: 20_000 },
      ratios: { naive: { median: 9, min: 8, max: 10, mean: expect.closeTo(Math.sqrt(80), 9) } },
    })
  })

  test('adds errors up over the rounds, most frequent first', () => {
    const failing = samples.map((each) => ({ ...each, errors: { 503: 6, timeout: 10 } }))
    const [naive] = summarizeSamples(failing, options.variants)
    expect(errorKinds(naive?.errors ?? {})).toBe('timeout: 20, 503: 12')
  })

  test('compares with the first variant where none of the usual ones is there', () => {
    const some = samples.filter(({ variant }) => variant === 'pipeline')
    const [batch, glide] = (['batch', 'glide'] as const).map((variant) =>
      some.map((each) => ({ ...each, variant })),
    )
    const both = [...(batch ?? []), ...(glide ?? [])]
    const [first, second] = summarizeSamples(both, ['batch', 'glide'])
    expect(first?.ratios).toEqual({})
    expect(second?.ratios.batch?.median).toBe(1)
  })
})

describe('the table', () => {
  const summaries = summarizeSamples(samples, options.variants)

  test('has a line per variant, in 120 columns', () => {
    const text = table(summaries)
    expect(rowOf(text, 'naive').split(/\s{2,}/)).toEqual([
      'naive',
      '2,000 (1,500-2,500)',
      '3.00',
      '186',
      '0',
      '1.00',
      '9.00',
      '5.00',
      '25.4',
      '390',
      '282',
    ])
    expect(rowOf(text, 'pipeline').split(/\s{2,}/)).toEqual([
      'pipeline',
      '17,500 (15,000-20,000)',
      '3.00',
      '19.5',
      '0',
      '0.00',
      '5.00',
      '1.00',
      '25.4',
      '61.2',
      '18.3',
    ])
    expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(120)
  })

  test('is followed by latencies and bytes', () => {
    const text = latencyTable(summaries)
    expect(
      text
        .split('\n')[1]
        ?.trim()
        .split(/\s{2,}/),
    ).toEqual([
      ...['(medians)', 'p50', 'p75', 'p90', 'p95', 'p97.5', 'p99', 'p99.9', 'longest'],
      ...['/request', '/request'],
    ])
    expect(rowOf(text, 'pipeline').split(/\s{2,}/)).toEqual([
      ...['pipeline', '3.00', '4.00', '5.00', '7.00', '9.00', '19.5', '200', '210', '290', '230'],
    ])
  })

  test('is followed by the result in a sentence', () => {
    const text = stripVTControlCharacters(conclusion(summaries))
    expect(text).toBe(
      'pipeline answers 8.94 times as many requests per second as naive (95 % sure: 2.17 to 36.9; round by round: 8.00 to 10.0), with a p99 of 19.5 ms instead of 186 ms.',
    )
  })

  test('gives no ratio where the generator was at its limit', () => {
    const limited = samples.map((each) =>
      each.variant === 'pipeline' && each.round === 2
        ? { ...each, generator: { cpuSeconds: 5, utilization: 0.97 } }
        : each,
    )
    const marked = summarizeSamples(limited, options.variants)
    expect(rowOf(table(marked), 'pipeline')).toMatch(/^pipeline \*/)
    expect(rowOf(table(marked), 'naive')).not.toContain('*')
    expect(marked.map(({ ratios }) => ratios)).toEqual([{}, {}])
    expect(rowOf(ratioTable(marked), 'pipeline').split(/\s{2,}/)).toEqual(['pipeline *', '-', '1'])
    const text = conclusion(marked)
    expect(text).toMatch(/^\* The generator was busy 97 %.*no ratio is given/)
    expect(text).not.toContain('times as many')
  })

  test('is followed by a warning when other programs had much of the CPU', () => {
    const disturbed = samples.map((each) => ({ ...each, elsewhere: each.round === 2 ? 0.41 : 0 }))
    expect(conclusion(summarizeSamples(disturbed, options.variants))).toContain('Up to 41 % of the')
    expect(conclusion(summaries)).not.toContain('no part of this')
  })

  test('has a single round without ranges', () => {
    const once = { ...options, rounds: 1 }
    const one = samples.filter(({ round }) => round === 1)
    expect(rowOf(table(summarizeSamples(one, once.variants)), 'pipeline')).toContain('20,000  3.00')
  })
})

describe('the table of ratios', () => {
  const rate = { naive: 1_000, pipeline: 8_000, noop: 20_000, glide: 10_000 }
  const variants = ['noop', 'naive', 'pipeline', 'glide'] as const
  const many = variants.flatMap((variant) =>
    [1, 2].map((round) => sample({ variant, round, requestsPerSecond: rate[variant] * round })),
  )

  test('compares with naive, pipeline and noop', () => {
    const text = ratioTable(summarizeSamples(many, variants))
    expect(
      rowOf(text, 'requests/s')
        .split(/\s{2,}/)
        .slice(1),
    ).toEqual(['naive', 'pipeline', 'noop'])
    // The two rounds have the same ratios, so that the intervals are as narrow as can be.
    expect(rowOf(text, 'glide').split(/\s{2,}/)).toEqual([
      ...['glide', '10.0 (10.0-10.0)', '1.25 (1.25-1.25)', '0.50 (0.50-0.50)'],
    ])
    expect(
      rowOf(text, 'noop')
        .split(/\s{2,}/)
        .at(-1),
    ).toBe('1')
    const once = ratioTable(
      summarizeSamples(
        many.filter(({ round }) => round === 1),
        variants,
      ),
    )
    expect(rowOf(once, 'glide').split(/\s{2,}/)).toEqual(['glide', '10.0', '1.25', '0.50'])
  })

  test('stands for the sentences where there are many variants', () => {
    expect(conclusion(summarizeSamples(many, variants))).toBe('')
  })

  test('is not there for a single variant', () => {
    expect(ratioTable(summarizeSamples(many, ['noop']))).toBe('')
  })
})

test('the header says where and how', () => {
  const text = header({
    machine: { cpu: 'EPYC', cores: 2, memoryBytes: 24 * 2 ** 30, kernel: 'Linux 6', node: 'v26' },
    redis: {
      version: '7.0.15',
      build: null,
      ioThreads: 1,
      pid: 1,
      transport: 'unix',
      url: 'unix:///s',
    },
    poolSize: 2,
    generator: 'wrk 4.1.0',
    clients: { glide: 'valkey-glide 2', batch: 'ioredis 6', pipeline: 'ioredis 6' },
    workers: 2,
    options,
  })
  expect(text).toContain(
    '7.0.15, NOT a build of Onetrip, 1 I/O thread, Unix socket, pool of 2 connections',
  )
  expect(text).toContain('wrk 4.1.0, 64 connections × 5 s × 2 rounds')
  expect(text).toContain('ioredis 6 (batch, pipeline)')
  expect(text).toContain(
    'realistic: 1,000 sessions, 1,000 items (Zipf), 20.0 % of the requests read, seed 17',
  )
  expect(text).toContain('2 workers each')
})

test('figures have as many digits as are worth reading', () => {
  expect([12_345.6, 123.4, 99.96, 12.34, 1.234, 0].map(figure)).toEqual([
    '12,346',
    '123',
    '100.0',
    '12.3',
    '1.23',
    '0.00',
  ])
  expect(figure(Number.NaN)).toBe('-')
})
