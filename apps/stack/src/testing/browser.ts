import axe from 'axe-core'
import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest'
import { chromiumPath } from './find-chromium.ts'

/** Settings of the browser window. */
export interface View {
  /** In CSS pixels. Default 1,280. Below 600, the browser acts as a phone with touch. */
  width?: number
  /** In CSS pixels. Default 900. */
  height?: number
  /** Default `light`. */
  theme?: 'light' | 'dark'
  /** Whether the user prefers reduced motion. Default true: without a GPU, animations keep a core busy. */
  reducedMotion?: boolean
}

export interface OpenOptions extends View {
  /** Complaints that the test expects, such as the console message about a 503 response. */
  expected?: RegExp
  /** Called with the empty page, before it loads the URL. */
  before?: (page: Page) => Promise<unknown>
}

/** Starts headless Chromium. */
export const launchChromium = (): Promise<Browser> =>
  chromium.launch({ ...(chromiumPath && { executablePath: chromiumPath }) })

/**
 * A headless Chromium for all tests of a file. Call it at the level of `describe`. Every page has its own context and
 * cookies.
 */
export function browserOfThisFile() {
  let browser: Browser

  beforeAll(async () => {
    browser = await launchChromium()
  })

  afterAll(() => browser?.close())

  return {
    /**
     * Opens a page, which is closed after the current test. The test fails if the page has complaints: a warning or an
     * error in the console (including violations of its Content-Security-Policy), an exception, or a request to
     * another origin (for a file: any other request).
     */
    async open(url: string, options: OpenOptions = {}): Promise<Page> {
      const page = await openPage(browser, options)
      const complaints = complaintsOf(page, url)
      onTestFinished(async () => {
        await page.context().close()
        const { expected } = options
        expect(complaints.filter((text) => !expected?.test(text))).toEqual([])
      })
      await options.before?.(page)
      await page.goto(url)
      return page
    },
  }
}

/** Opens an empty page in a new context. */
export async function openPage(browser: Browser, view: View = {}): Promise<Page> {
  const { width = 1_280, height = 900, theme = 'light', reducedMotion = true } = view
  const context = await browser.newContext({
    viewport: { width, height },
    isMobile: width < 600,
    hasTouch: width < 600,
    colorScheme: theme,
    reducedMotion: reducedMotion ? 'reduce' : 'no-preference',
  })
  context.setDefaultTimeout(50_000) // for a busy machine
  return await context.newPage()
}

/** Collects the complaints of a page from now on. */
function complaintsOf(page: Page, url: string): readonly string[] {
  const complaints: string[] = []
  page.on('console', (message) => {
    if (['warning', 'error'].includes(message.type())) {
      complaints.push(`${message.text()} (${message.location().url})`)
    }
  })
  page.on('pageerror', (error) => complaints.push(error.stack ?? String(error)))
  const own = new URL(url)
  page.on('request', (request) => {
    const { protocol, origin } = new URL(request.url())
    const inline = protocol === 'data:' || protocol === 'blob:'
    const same = protocol.startsWith('http') ? origin === own.origin : request.url() === url
    if (!inline && !same) complaints.push(`requested ${request.url()}`)
  })
  return complaints
}

const TRANSITIONS_ENDED = `Promise.allSettled(
  document.getAnimations().filter((one) => one instanceof CSSTransition).map(({ finished }) => finished))`

/** The violations that axe-core finds in the current page, one line per element. */
export async function accessibilityFaults(page: Page): Promise<string[]> {
  await page.evaluate(TRANSITIONS_ENDED) // intermediate colours would be false positives
  await page.evaluate(axe.source)
  const { violations } = await page.evaluate<Pick<axe.AxeResults, 'violations'>>(
    "axe.run({ resultTypes: ['violations'] })",
  )
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, any }) => `${id}: ${help}: ${html} ${any.map(({ message }) => message)}`),
  )
}

/** The number of CSS pixels by which the page is wider than its window. */
export const overflowOf = (page: Page): Promise<number> =>
  page.evaluate<number>(
    'document.documentElement.scrollWidth - document.documentElement.clientWidth',
  )
