import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import type { HttpOptions } from '../src/http/options.ts'
import { conclusion, errorKinds, figure, header, table } from '../src/http/report.ts'
import { orderOf, summarizeSamples } from '../src/http/summary.ts'
import { sample } from './support/samples.ts'

const options: HttpOptions = {
  connections: 64,
  duration: 5,
  rounds: 2,
  variants: ['naive', 'pipeline'],
  warmup: 2,
  items: 1000,
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
    expect(naive).toMatchObject({ ratio: null, requestsPerSecond: { median: 2_000 } })
    expect(pipeline).toMatchObject({
      requestsPerSecond: { median: 17_500, min: 15_000, max: 20_000 },
      ratio: { median: 9, min: 8, max: 10 },
    })
  })

  test('adds errors up over the rounds, most frequent first', () => {
    const failing = samples.map((each) => ({ ...each, errors: { 503: 6, timeout: 10 } }))
    const [naive] = summarizeSamples(failing, options.variants)
    expect(errorKinds(naive?.errors ?? {})).toBe('timeout: 20, 503: 12')
  })

  test('compares with the first variant where naive is not among them', () => {
    const some = samples.filter(({ variant }) => variant === 'pipeline')
    const more = some.map((each) => ({ ...each, variant: 'sequential' as const }))
    const [first, second] = summarizeSamples([...some, ...more], ['sequential', 'pipeline'])
    expect(first?.ratio).toBeNull()
    expect(second?.ratio?.median).toBe(1)
  })
})

describe('the table', () => {
  const summaries = summarizeSamples(samples, options.variants)

  test('has a line per variant, in 120 columns', () => {
    const text = table(summaries, options)
    expect(rowOf(text, 'naive').split(/\s{2,}/)).toEqual([
      'naive',
      '2,000 (1,500-2,500)',
      '3.00',
      '186',
      '0',
      '1.00',
      '9.00',
      '5.00',
      '390',
      '282',
      '1',
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
      '61.2',
      '18.3',
      '9.00 (8.00-10.0)',
    ])
    expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(120)
  })

  test('is followed by the result in a sentence', () => {
    const text = stripVTControlCharacters(conclusion(summaries, options))
    expect(text).toBe(
      'pipeline answers 9.00 times as many requests per second as naive (8.00 to 10.0 round by round), with a p99 of 19.5 ms instead of 186 ms.',
    )
  })

  test('marks a variant whose generator was at its limit', () => {
    const limited = samples.map((each) =>
      each.variant === 'pipeline' && each.round === 2
        ? { ...each, generator: { cpuSeconds: 5, eventLoopUtilization: 0.97 } }
        : each,
    )
    const marked = summarizeSamples(limited, options.variants)
    expect(rowOf(table(marked, options), 'pipeline')).toMatch(/^pipeline \*/)
    expect(rowOf(table(marked, options), 'naive')).not.toContain('*')
    expect(conclusion(marked, options)).toMatch(/\* The generator was busy 97 %.*Trust no ratio/)
  })

  test('says what it compares with if that is not naive', () => {
    const two = { ...options, variants: ['sequential' as const, 'pipeline' as const] }
    const renamed = samples.map((each) =>
      each.variant === 'naive' ? { ...each, variant: 'sequential' as const } : each,
    )
    const text = summarizeSamples(renamed, two.variants)
    expect(table(text, two)).toContain('× sequential')
    expect(conclusion(text, two)).toContain('ratios refer to the first, sequential')
  })

  test('has a single round without ranges', () => {
    const once = { ...options, rounds: 1 }
    const one = samples.filter(({ round }) => round === 1)
    expect(rowOf(table(summarizeSamples(one, once.variants), once), 'pipeline')).toContain(
      '20,000  3.00',
    )
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
    options,
    sessions: 64,
  })
  expect(text).toContain('7.0.15, NOT a build of Onetrip, 1 I/O thread, Unix socket')
  expect(text).toContain('64 connections × 5 s × 2 rounds')
  expect(text).toContain('seed 17')
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

test('every variant comes early and late, before and after each other one', () => {
  const orders = Array.from({ length: 6 }, (_, round) => orderOf(['a', 'b', 'c'], round).join(''))
  expect(new Set(orders).size).toBe(6)
  const two = Array.from({ length: 4 }, (_, round) => orderOf(['a', 'b'], round).join(''))
  expect(two).toEqual(['ab', 'ba', 'ba', 'ab'])
})
