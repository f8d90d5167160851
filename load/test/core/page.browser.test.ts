import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { browserOfThisFile, overflowOf, type View } from '@onetrip/stack/testing/browser.ts'
import { chromiumPath } from '@onetrip/stack/testing/find-chromium.ts'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { describe, expect, test } from 'vitest'
import { http } from '../../src/experiments/http/http.ts'
import { pageOf } from '../../src/reporting/page.ts'
import { partOf } from '../../src/reporting/part.ts'
import { httpSamples, resultOf } from '../support/result.ts'
import { ioThreadsResult } from './support/results.ts'

const rates = {
  naive: [2_900, 3_100],
  'node-redis-batch': [38_000, 30_000],
  batch: [40_000, 41_000],
}
const evil = '<img src=x onerror="pwned=1"><script>pwned=1</script>'
const results = [
  { name: 'http.json', experiment: http, result: resultOf(http, httpSamples(rates)) },
  ioThreadsResult(),
]
const parts = results.map(partOf)

describe.skipIf(!chromiumPath)('in Chromium, from a file', () => {
  const browser = browserOfThisFile()

  async function open(view: View) {
    const file = join(await temporaryFolder(), 'report.html')
    await writeFile(file, await pageOf(parts, [evil]))
    return await browser.open(pathToFileURL(file).href, view)
  }

  test.each([
    { width: 1_280, theme: 'light' },
    { width: 1_280, theme: 'dark' },
    { width: 390, theme: 'light' },
    { width: 320, theme: 'dark' },
  ] as const)('%j: nothing overlaps or overflows, and no script runs', async (view) => {
    const page = await open(view)
    expect(await overflowOf(page)).toBe(0)
    expect(await page.evaluate(VISIBLE_CHARTS)).toBe(await page.evaluate(FIGURES))
    expect(await page.evaluate(CHART_FAULTS)).toEqual([])
    const [background, text] = await page.evaluate<number[]>(BRIGHTNESS)
    if (view.theme === 'dark') expect(background).toBeLessThan(60)
    else expect(background).toBeGreaterThan(200)
    expect(Math.abs((text ?? 0) - (background ?? 0))).toBeGreaterThan(150)
    expect(await page.evaluate('typeof pwned')).toBe('undefined')
  })

  test('the download link has the unchanged data', async () => {
    const page = await open({ width: 1_280 })
    const saved = await page.evaluate<string>(SAVED)
    expect(JSON.parse(saved)).toEqual(JSON.parse(JSON.stringify(results[0]?.result)))
    await page.evaluate("document.querySelector('a[download]').click()")
  })
})

const FIGURES = "document.querySelectorAll('figure').length"
const VISIBLE_CHARTS =
  "[...document.querySelectorAll('figure svg')].filter((svg) => svg.getClientRects().length > 0).length"

/** Texts in charts that are too small, outside of the drawing, or overlap. */
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

/** The data of the download link. */
const SAVED = `new TextDecoder().decode(
  Uint8Array.from(atob(document.querySelector('a[download]').href.split(',')[1]), (c) => c.charCodeAt(0)))`
