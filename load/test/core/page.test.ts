import { expect, test } from 'vitest'
import { http } from '../../src/experiments/http/http.ts'
import { published } from '../../src/measure/machine.ts'
import { readResults } from '../../src/reporting/files.ts'
import { pageOf } from '../../src/reporting/page.ts'
import { httpSamples, resultOf, runsOf } from '../support/result.ts'

const widths = (page: string) =>
  [...page.matchAll(/<rect [^>]*width="([^"]*)"/g)].map(([, width]) => Number(width))

test('the chart has a bar for each case, as long as its value', () => {
  const result = resultOf(http, httpSamples({ naive: [1_000], batch: [4_000] }))
  const page = pageOf({ experiment: http, result })
  expect(widths(page)).toEqual([90, 360])
  expect(page).toContain('<figcaption>requests/s, median of the rounds</figcaption>')
})

test.each([
  ['zeros', 0, [1]],
  ['no values', null, []],
])('a chart of %s has no NaN', (_, value, expected) => {
  const values = { requestsPerSecond: [value], p99: [null] }
  const page = pageOf({
    experiment: http,
    result: resultOf(http, runsOf({ variant: 'a' }, values)),
  })
  expect(widths(page)).toEqual(expected)
  expect(page).not.toContain('NaN')
})

const results = await readResults(published)
test.each(results)('$name can be shown: the chart has at most 24 bars', (saved) => {
  const page = pageOf(saved)
  expect(page).not.toMatch(/NaN|undefined|Infinity/)
  expect(widths(page).length).toBeGreaterThan(0)
  expect(widths(page).length).toBeLessThanOrEqual(24)
  expect(Math.max(...widths(page))).toBe(360)
})
