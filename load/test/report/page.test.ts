import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { renderHtml } from '../../src/report/render.ts'
import { httpResult } from '../support/http-results.ts'
import { experimentResult, latencyResult } from './support/results.ts'

const http = httpResult({
  naive: [2_900, 3_000, 3_100],
  pipeline: [20_000, 21_000, 22_000],
  batch: [39_000, 40_000, 41_000],
})
const documents = [http, latencyResult(), experimentResult()]
const page = (list: readonly object[]) =>
  renderHtml(list.map((document, index) => ({ name: `${index}.json`, document })))
const whole = await page(documents)

/** What stands between the tags, without script, style and data. */
const wordsOf = (html: string) =>
  html
    .replaceAll(/<(script|style)\b[^>]*>.*?<\/\1>/gs, '')
    .replaceAll(/<[^>]*>/g, '\n')
    .replaceAll(/\s+/g, ' ')

const hashOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

describe('the page', () => {
  test('begins with the figure, its range and what makes it', () => {
    expect(/<h1>(.*?)<\/h1>/.exec(whole)?.[1]).toBe(
      'batch answers 13.3 times as many requests a second as naive (13.2 to 13.4, 3 rounds).',
    )
    expect(wordsOf(whole)).toContain(
      'naive opens 1 connection to Redis, waits for 5 round trips and sends 9 commands; batch opens no',
    )
  })

  test('loads nothing, and its policy lets only its own style and script in', () => {
    expect(whole.match(/<script[^>]*\bsrc\b/i)).toBeNull()
    expect(whole.match(/<(link|img|iframe|object|embed|base|form)\b/i)).toBeNull()
    expect(whole.match(/@import|\burl\((?!#)/)).toBeNull()
    expect(whole.match(/\b(?:href|src|xlink:href|action|srcset)="(?!#)/i)).toBeNull()
    expect(whole.match(/ style="| on\w+="/i)).toBeNull()
    const policy = /http-equiv="Content-Security-Policy" content="(.*?)"/.exec(whole)?.[1] ?? ''
    const inside = (tag: string) => new RegExp(`<${tag}>(.*?)</${tag}>`, 's').exec(whole)?.[1] ?? ''
    expect(policy.replaceAll('&#39;', "'")).toBe(
      `default-src 'none'; style-src ${hashOf(inside('style'))}; script-src ${hashOf(inside('script'))}; base-uri 'none'; form-action 'none'`,
    )
  })

  test('has every chart twice, for wide and narrow windows, with words for who does not see it', () => {
    const charts = [
      ...whole.matchAll(/<svg class="(wide|narrow)" role="img" aria-labelledby="(.*?)"/g),
    ]
    expect(charts.filter(([, kind]) => kind === 'wide')).toHaveLength(4)
    expect(charts.filter(([, kind]) => kind === 'narrow')).toHaveLength(4)
    for (const [, , ids = ''] of charts) {
      const [title, description] = ids.split(' ')
      expect(whole).toMatch(new RegExp(`<title id="${title}">[^<]{10,}</title>`))
      expect(whole).toMatch(new RegExp(`<desc id="${description}">[^<]{20,}</desc>`))
    }
    const ids = [...whole.matchAll(/ id="(.*?)"/g)].map(([, id]) => id)
    expect(new Set(ids).size).toBe(ids.length)
  })

  test('draws in the colours of the theme only', () => {
    const svg = [...whole.matchAll(/<svg.*?<\/svg>/gs)].join('')
    const painted = [...svg.matchAll(/\b(?:fill|stroke)="(.*?)"/g)].map(([, colour = '']) => colour)
    const others = painted.filter((colour) => !/^(var\(--[\w-]+\)|none|url\(#.*\))$/.test(colour))
    expect([...new Set(others)]).toEqual([])
  })

  test("has the documents' figures beside ours", () => {
    const words = wordsOf(whole)
    expect(words).toContain('table 4: update_token and update_token_pipeline')
  })

  test('has every sample, and the file itself', () => {
    const table = /<table id="samples-0-0".*?<\/table>/s.exec(whole)?.[0] ?? ''
    expect(table.match(/<tr>/g)).toHaveLength(1 + http.samples.length)
    expect(table).toContain('latency<wbr>.p999')
    const data = /<script type="application\/json" id="document-0">(.*?)<\/script>/s.exec(whole)
    expect(JSON.parse(data?.[1] ?? '')).toEqual(JSON.parse(JSON.stringify(http)))
  })

  test('tells where, when and how', () => {
    const words = wordsOf(whole)
    for (const fact of ['EPYC, 2 cores', 'v26.10.0', '8.0.6, patched-1', http.date, 'seed 17']) {
      expect(words).toContain(fact)
    }
    expect(whole).toContain('<code>npm run load -- http</code>')
    expect(words).toContain('docs/method.md')
  })
})

describe('rows that nothing is claimed from', () => {
  test('of a generator at its limit are marked, and there is no ratio', async () => {
    const limited = httpResult({ naive: [3_000, 3_000], batch: [40_000, 40_000] }, ({ variant }) =>
      variant === 'batch' ? { generator: { cpuSeconds: 5, utilization: 0.99 } } : {},
    )
    const html = await page([limited])
    expect(html).toContain('<th scope="row">batch\u00a0*</th>')
    expect(html).toMatch(/<h1>No ratio is claimed between batch and naive/)
    expect(html).not.toMatch(/times as many/)
  })

  test('of a disturbed machine are marked, and no sentence claims a ratio', async () => {
    const rates = { naive: [3_000, 3_000], batch: [40_000, 40_000] }
    const html = await page([httpResult(rates, () => ({ elsewhere: 0.4 }))])
    expect(html).toContain('<th scope="row">batch\u00a0†</th>')
    expect(html).toMatch(/<h1>No ratio is claimed/)
    expect(wordsOf(html)).toContain('had up to 40 % of the CPU time')
  })
})

test('sentences that were broken for the terminal are whole', async () => {
  const conclusions = ['A port is kept', 'for 60 s.', 'With a pool it is not.']
  const html = await page([experimentResult({ conclusions })])
  expect(html).toContain('<p>A port is kept for 60 s.</p><p>With a pool it is not.</p>')
})

test('a run in which nothing succeeded is shown all the same', async () => {
  const none = httpResult({ naive: [0], batch: [0] }, ({ perRequest, latency }) => ({
    ok: 0,
    errors: { ECONNREFUSED: 7 },
    perRequest: Object.fromEntries(
      Object.keys(perRequest).map((name) => [name, Number.NaN]),
    ) as typeof perRequest,
    latency: Object.fromEntries(Object.keys(latency).map((name) => [name, null])) as typeof latency,
  }))
  const saved: unknown = JSON.parse(JSON.stringify(none))
  const html = await page([saved as object])
  expect(html).toMatch(/<h1>No ratio is claimed between batch and naive/)
  expect(wordsOf(html)).toContain('ECONNREFUSED: 7')
})

test('nothing in a result becomes a part of the page', async () => {
  const evil = '</script><script>alert(1)</script><img src=x onerror=alert(1)>"\'&`$x<!--'
  const spoil = (value: unknown): unknown => {
    if (typeof value === 'string') return `${value}${evil}`
    if (Array.isArray(value)) return value.map(spoil)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([name, each]) => [name, name === 'by' ? each : spoil(each)]),
    )
  }
  const spoiled = documents.map((document) => ({
    ...(spoil(document) as object),
    ...{ format: document.format, date: `2026${evil}` },
    ...('experiment' in document && { experiment: evil }),
  }))
  for (const document of spoiled) {
    const html = await page([document])
    expect(html.includes('&lt;img src=x')).toBe(true)
    expect(html.match(/<img|<script>alert|<!--/i)).toBeNull()
    expect(html.match(/<script\b/g)).toHaveLength(2)
    expect(html.match(/<\/script>/g)).toHaveLength(2)
  }
})
