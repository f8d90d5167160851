import { describe, expect, test } from 'vitest'
import { accessibilityFaults, browserOfThisFile, overflowOf } from '../src/testing/browser.ts'
import { chromiumPath } from '../src/testing/find-chromium.ts'

describe.skipIf(!chromiumPath)('the checks of the browser tests find', () => {
  const browser = browserOfThisFile()
  const head =
    '<!doctype html><html lang="en"><title>t</title><meta name="viewport" content="width=device-width">'
  const open = (html: string, options = {}) =>
    browser.open(`data:text/html,${encodeURIComponent(head + html)}`, options)

  test('a control without a name and text of low contrast', async () => {
    const faults = await accessibilityFaults(
      await open('<main><h1 style="color: #ccc">faint</h1><input></main>'),
    )
    expect(faults.map((fault) => fault.split(':')[0]).sort()).toEqual(['color-contrast', 'label'])
  })

  test.for([360, 1_280])('a page that is wider than a window of %i pixels', async (width) => {
    const page = await open('<div style="width: 1400px">wide</div>', { width })
    expect(await overflowOf(page)).toBeGreaterThanOrEqual(1_400 - width)
  })

  test.for([
    ['an error in the console', '<script>console.error("broken")</script>', /broken/],
    ['an exception', '<script>throw new Error("broken")</script>', /broken/],
    [
      'a violation of its Content-Security-Policy',
      '<meta http-equiv="content-security-policy" content="style-src \'none\'"><p style="color: red">',
      /Content Security Policy/,
    ],
    [
      'a request to another origin',
      '<img alt="" src="http://localhost:1/x.png">',
      /^requested http:\/\/localhost:1\//,
    ],
  ] as const)('%s', async ([, html, expected]) => {
    const page = await open(html, { expected: /./ })
    await page.waitForLoadState('networkidle')
    expect(browser.complaints).toContainEqual(expect.stringMatching(expected))
  })
})
