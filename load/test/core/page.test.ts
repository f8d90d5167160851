import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { Result, Sample } from '../../src/experiment/result.ts'
import { Rows } from '../../src/experiment/rows.ts'
import { http } from '../../src/experiments/http/http.ts'
import { timeCharts } from '../../src/reporting/charts.ts'
import type { SavedResult } from '../../src/reporting/files.ts'
import { markdownOf } from '../../src/reporting/markdown.ts'
import { pageOf } from '../../src/reporting/page.ts'
import { partOf } from '../../src/reporting/part.ts'
import { resultText } from '../../src/reporting/terminal.ts'
import { httpSamples, resultOf } from '../support/result.ts'
import { ioThreadsResult } from './support/results.ts'

const httpResult = (...args: Parameters<typeof httpSamples>): SavedResult => ({
  ...{ name: 'http.json', experiment: http },
  result: resultOf(http, httpSamples(...args)),
})
const all = httpResult({
  naive: [2_900, 3_000, 3_100],
  pipeline: [20_000, 21_000, 22_000],
  batch: [39_000, 40_000, 41_000],
})
const partsOf = (...all: SavedResult[]) => all.map(partOf)
const whole = await pageOf(partsOf(all, ioThreadsResult()))

const headingOf = (html: string) => /<h1[^>]*>(.*?)<\/h1>/.exec(html)?.[1]

/** The text without tags and styles. */
const wordsOf = (html: string) =>
  html
    .replaceAll(/<style>.*?<\/style>/gs, '')
    .replaceAll(/<[^>]*>/g, '\n')
    .replaceAll(/\s+/g, ' ')

describe('the page', () => {
  test('begins with the headline, its interval and three tiles', () => {
    expect(headingOf(whole)).toBe('One shared trip: 13.3× the requests')
    expect(wordsOf(whole)).toMatch(
      /batch against naive, 64 connections; 95 % interval [\d.]+ to 13\.\d+ requests\/s 13\.3×/,
    )
    expect(whole.match(/<dd>/g)).toHaveLength(3)
    expect(wordsOf(whole)).toContain('round trips to Redis per request; naive: 5.00')
    expect(wordsOf(whole)).toMatch(/batch answers 13\.3 times as many page views a second as naive/)
  })

  test('folds tables below charts, and names the machine once', () => {
    expect(whole).toMatch(/<details><summary>Table: All variants.*?<\/summary><div class="table"/)
    expect(whole.match(/Machine: EPYC/g)).toHaveLength(1)
  })

  test('loads nothing, has no script, and its policy permits only its own style', () => {
    expect(whole.match(/<(script|link|img|iframe|object|embed|base|form)\b/i)).toBeNull()
    expect(whole.match(/@import|\burl\((?!#)/)).toBeNull()
    expect(whole.match(/\b(?:href|src|xlink:href|action|srcset)="(?!#|data:)/i)).toBeNull()
    expect(whole.match(/ style="| on\w+="/i)).toBeNull()
    const policy = /http-equiv="Content-Security-Policy" content="(.*?)"/.exec(whole)?.[1] ?? ''
    const style = /<style>(.*?)<\/style>/s.exec(whole)?.[1] ?? ''
    const hash = createHash('sha256').update(style).digest('base64')
    expect(policy.replaceAll('&#39;', "'")).toBe(
      `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'`,
    )
  })

  test('charts have labels, and ids are unique', () => {
    expect(whole.match(/<svg role="img" aria-label="[^"]{10,}"/g)?.length).toBeGreaterThan(3)
    const ids = [...whole.matchAll(/ id="(.*?)"/g)].map(([, id]) => id)
    expect(new Set(ids).size).toBe(ids.length)
  })

  test('uses only colours of the theme', () => {
    const svg = [...whole.matchAll(/<svg.*?<\/svg>/gs)].join('')
    const painted = [...svg.matchAll(/\b(?:fill|stroke)="(.*?)"/g)].map(([, colour = '']) => colour)
    const others = painted.filter(
      (colour) => !/^(var\(--[\w-]+(, var\(--[\w-]+\))?\)|none|url\(#.*\))$/.test(colour),
    )
    expect([...new Set(others)]).toEqual([])
  })

  test("has the source articles' figures, and the JSON file for download", () => {
    expect(wordsOf(whole)).toMatch(
      /The source articles: .*Redis 6\.2\.6.* articles commands\/s .* 215,800 /s,
    )
    const data = /download="http.json" href="data:application\/json;base64,(.*?)"/.exec(whole)?.[1]
    const read = JSON.parse(Buffer.from(data ?? '', 'base64').toString())
    expect(read).toEqual(JSON.parse(JSON.stringify(all.result)))
  })

  test('has machine, versions, date, options and command', () => {
    const words = wordsOf(whole)
    const facts = ['EPYC, 2 cores', 'Node 26.10.0', '8.0.6 patched-1', all.result.date, 'seed 17']
    for (const fact of [...facts, 'docs/method.md']) expect(words).toContain(fact)
    expect(whole).toContain('<code>npm run load -- http</code>')
  })
})

test.each([
  [{ "Redis's I/O threads": 1 }, {}, 'I/O threads off'],
  [{ "Redis's I/O threads": 3 }, {}, '3 I/O threads'],
  [{ "Redis's I/O threads": '1, 3' }, {}, 'I/O threads 1, 3 (1 is off)'],
  [{ "Redis's I/O threads": null }, {}, 'I/O threads unknown'],
  [{}, { ioThreads: [2] }, '2 I/O threads'], // results of older versions
  [{}, {}, null],
])(
  'captions of tables with figures have the setting of I/O threads: %j %j',
  (load, options, text) => {
    const { sections } = partOf({ experiment: http, result: { ...all.result, load, options } })
    const tables = sections.flatMap((section) => section.tables)
    const isOfFigures = ({ head }: (typeof tables)[number]) => head[1] !== 'how'
    expect(tables.filter(isOfFigures).length).toBeGreaterThan(1)
    for (const table of tables) {
      const hasText = text !== null && isOfFigures(table)
      expect(table.caption.split('; ').slice(1)).toEqual(hasText ? [text] : [])
    }
  },
)

test('charts of throughput and p99 over time have a gap between the rounds', async () => {
  const samples = httpSamples({ naive: [3_000, 3_000], batch: [40_000, 40_000] }).map((sample) => {
    // The last run ended early.
    const second = sample.case.variant === 'batch' && sample.round === 2 ? [1] : [1, 2]
    const requestsPerSecond = second.map((at) => 1_000 * sample.round + at)
    return { ...sample, series: { second, requestsPerSecond, p99: second } }
  })
  const [rates, p99] = timeCharts(Rows.of(http, samples))
  expect(rates).toMatchObject({ title: 'Throughput, second by second', unit: 'requests/s' })
  expect(rates?.x).toMatchObject({ names: ['1', '2', '', '1', '2'] })
  expect(rates?.lines.map(({ name, points }) => [name, points.map(([, y]) => y)])).toEqual([
    ['naive', [1_001, 1_002, null, 2_001, 2_002]],
    ['batch', [1_001, 1_002, null, 2_001, null]],
  ])
  expect(p99?.lines[0]?.points.map(([, y]) => y)).toEqual([1, 2, null, 1, 2])
  const html = await pageOf([partOf({ experiment: http, result: resultOf(http, samples) })])
  expect(html).toContain('aria-label="Throughput, second by second"')
  expect(html).toContain('aria-label="p99, second by second"')
  expect(timeCharts(Rows.of(http, httpSamples({ naive: [1] })))).toEqual([])
})

test('a limit is drawn as a dashed line with its name', async () => {
  const html = await pageOf(
    partsOf(httpResult({ naive: [3_000], batch: [40_000], noop: [50_000] })),
  )
  const [chart = ''] = /<svg.*?<\/svg>/s.exec(html) ?? []
  const dashed = chart.match(/<path[^>]*stroke-dasharray[^>]*>/g)
  expect(dashed).toEqual([expect.stringContaining('fill="none"')])
  const words = [...chart.matchAll(/<text[^>]*>(.*?)<\/text>/g)].map(([, word]) => word)
  expect(words).toEqual(expect.arrayContaining(['batch', 'naive', 'noop 50,000']))
})

/** A result in which the batch row has a mark. */
const marked = (more: Partial<Sample>) =>
  partOf(
    httpResult({ naive: [3_000, 3_000], batch: [40_000, 40_000] }, (variant) =>
      variant === 'batch' ? more : {},
    ),
  )

test('without a reliable rate, the row is marked and no ratio of rates is shown', async () => {
  const html = await pageOf([marked({ doubts: ['generator'] })])
  expect(html).toContain('<th scope="row">batch *</th>')
  expect(headingOf(html)).toBe('One shared trip: 0.16× the CPU time per request')
  expect(wordsOf(html)).toContain('rows are marked, so this is CPU time of the API')
  expect(wordsOf(html)).toContain('There is no reliable ratio of batch to naive')
  expect(html).not.toMatch(/times as many|13\.3/)
})

test('on a disturbed machine, the headline is CPU time, and the claim has the ratio and the mark', async () => {
  const html = await pageOf([marked({ values: { elsewhere: 0.4 } })])
  expect(html).toContain('<th scope="row">batch †</th>')
  expect(headingOf(html)).toBe('One shared trip: 0.16× the CPU time per request')
  expect(wordsOf(html)).toMatch(/batch answers 13\.3 times as many .* Their rows are marked †/)
  expect(wordsOf(html)).toContain('batch † 40,000 13.3')
})

test('claims and tables show the same ratio in the terminal, in Markdown and on the page', async () => {
  // The median of the rounds is 8.82, their geometric mean 7.56.
  const part = partOf(httpResult({ naive: [1_000, 1_000, 1_000], batch: [5_440, 8_820, 9_005] }))
  for (const text of [resultText(part), markdownOf([part]), await pageOf([part])]) {
    const words = text.replaceAll(/<[^>]*>|\||\\/g, ' ').replaceAll(/\s+/g, ' ')
    expect(words).toContain('batch answers 7.56 times as many')
    expect(words).toContain('7.56 (5.44-9.01)')
    expect(words).toMatch(/ 7\.56 \(\d\.\d+-1\d\.\d\)/)
    expect(words).not.toContain('8.82')
  }
})

test('all strings of a result are escaped on the page', async () => {
  const evil = '</script><script>alert(1)</script><img src=x onerror=alert(1)>"\'&`$x<!--'
  const spoil = (value: unknown): unknown => {
    if (typeof value === 'string') return `${value}${evil}`
    if (Array.isArray(value)) return value.map(spoil)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, spoil(each)]))
  }
  for (const saved of [all, ioThreadsResult()]) {
    const html = await pageOf(partsOf({ ...saved, result: spoil(saved.result) as Result }), [evil])
    expect(html.includes('&#60;img src=x')).toBe(true)
    expect(html.match(/<img|<\/?script|<!--/i)).toBeNull()
  }
})
