import { spawnSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { temporaryFolder } from '@onetrip/stack/testing/places.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { renderHtml } from '../../src/report/render.ts'
import { httpResult } from '../support/http-results.ts'
import { type Browser, startBrowser, type View } from './support/browser.ts'
import { experimentResult, latencyResult } from './support/results.ts'

// Skipped where there is no Chromium: apt-get install chromium.
const isHere = spawnSync('chromium', ['--version']).error === undefined

const rates = {
  naive: [2_900, 3_100],
  'node-redis-batch': [38_000, 30_000],
  batch: [40_000, 41_000],
}
const evil = '<img src=x onerror="pwned=1"><script>pwned=1</script>'
const documents = [httpResult(rates), latencyResult(), experimentResult({ conclusions: [evil] })]

describe.skipIf(!isHere)('in Chromium, without a network', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await startBrowser()
  })
  afterAll(() => browser?.close())

  async function open(view: View) {
    const file = join(await temporaryFolder(), 'report.html')
    const named = documents.map((document, index) => ({ name: `${index}`, document }))
    await writeFile(file, await renderHtml(named))
    return await browser.open(pathToFileURL(file).href, view)
  }

  test.each([
    { width: 1_280, theme: 'light' },
    { width: 1_280, theme: 'dark' },
    { width: 390, theme: 'light' },
    { width: 320, theme: 'dark' },
  ] as const)('%j: nothing overlaps, overflows or is asked for', async (view) => {
    const page = await open(view)
    const { scrollWidth, clientWidth } = await page.evaluate<Sizes>(SIZES)
    expect(scrollWidth).toBe(clientWidth)
    expect(clientWidth).toBeGreaterThan(view.width - 20) // a scroll bar
    expect(await page.evaluate(VISIBLE_CHARTS)).toBe(await page.evaluate(FIGURES))
    expect(await page.evaluate(CHART_FAULTS)).toEqual([])
    const [background, text] = await page.evaluate<number[]>(BRIGHTNESS)
    if (view.theme === 'dark') expect(background).toBeLessThan(60)
    else expect(background).toBeGreaterThan(200)
    expect(Math.abs((text ?? 0) - (background ?? 0))).toBeGreaterThan(150)
    expect(await page.evaluate('typeof pwned')).toBe('undefined')
    expect(page.complaints).toEqual([])
  })

  test('a table is copied with tabs, and the data saved as it was', async () => {
    const page = await open({ width: 1_280 })
    expect(await page.evaluate("document.querySelectorAll('button[hidden]').length")).toBe(0)
    const copied = await page.evaluate<string>(COPY)
    expect(copied.split('\n')[0]).toMatch(/^variant\trequests\/s \(range\)\tp50 ms\t/)
    expect(copied.split('\n')[1]).toMatch(/^naive\t3,000 \(2,900-3,100\)\t3.00\t/)
    const saved = await page.evaluate<string>(SAVE)
    expect(JSON.parse(saved)).toEqual(JSON.parse(JSON.stringify(documents[0])))
  })

  test('it can be printed', async () => {
    const page = await open({ width: 1_280, theme: 'dark' })
    expect((await page.pdf()).subarray(0, 5).toString()).toBe('%PDF-')
  })
})

interface Sizes {
  scrollWidth: number
  clientWidth: number
}

const SIZES =
  '(({ scrollWidth, clientWidth }) => ({ scrollWidth, clientWidth }))(document.documentElement)'
const FIGURES = "document.querySelectorAll('figure').length"
const VISIBLE_CHARTS =
  "[...document.querySelectorAll('figure svg')].filter((svg) => svg.getClientRects().length > 0).length"

/** Texts of charts that are too small, stick out of the drawing, or lie on each other. */
const CHART_FAULTS = `[...document.querySelectorAll('figure svg')].flatMap((svg) => {
  const frame = svg.getBoundingClientRect()
  if (frame.width === 0) return []
  const texts = [...svg.querySelectorAll('text')].map((text) => ({ text: text.textContent, box: text.getBoundingClientRect() }))
  const faults = texts.flatMap(({ text, box }) => [
    ...(box.height < 10 ? ['small: ' + text] : []),
    ...(box.left < frame.left - 1 || box.right > frame.right + 1 ? ['outside: ' + text] : []),
  ])
  const lie = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3
  texts.forEach((one, index) => {
    for (const other of texts.slice(index + 1)) {
      if (lie(one.box, other.box)) faults.push('on each other: ' + one.text + ', ' + other.text)
    }
  })
  return faults
})`

const BRIGHTNESS = `[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color].map(
  (colour) => colour.match(/\\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0) / 3)`

const COPY = `new Promise((resolve) => {
  navigator.clipboard.writeText = async (text) => resolve(text)
  document.querySelector('button[data-copy]').click()
})`

const SAVE = `new Promise((resolve) => {
  const make = URL.createObjectURL
  URL.createObjectURL = (blob) => {
    blob.text().then(resolve)
    return make.call(URL, blob)
  }
  document.querySelector('button[data-download]').click()
})`
