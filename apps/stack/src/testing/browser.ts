import axe from 'axe-core'
import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest'
import { chromiumPath } from './find-chromium.ts'

/** How a page is shown. */
export interface View {
  /** In CSS pixels. Default 1,280. Below 600 the page is shown as on a phone, with touch. */
  width?: number
  /** In CSS pixels. Default 900. */
  height?: number
  /** Default `light`. */
  theme?: 'light' | 'dark'
  /** Whether the user asked for less motion. Default false. */
  reducedMotion?: boolean
}

export interface OpenOptions extends View {
  /** Complaints that the test expects, such as the console's line about an answer of 503. */
  expected?: RegExp
  /** Called with the page while it is still empty. */
  before?: (page: Page) => Promise<unknown>
}

/** Starts headless Chromium. */
export const launchChromium = (): Promise<Browser> =>
  chromium.launch({ ...(chromiumPath && { executablePath: chromiumPath }) })

/**
 * A headless Chromium for all tests of a file. Call it where its tests are described. Every page has a
 * context of its own, with its own cookies.
 */
export function browserOfThisFile() {
  let browser: Browser
  let complaints: readonly string[] = []

  beforeAll(async () => {
    browser = await launchChromium()
  })

  afterAll(() => browser?.close())

  return {
    /** What the page that was opened last has complained about. */
    get complaints(): readonly string[] {
      return complaints
    },
    /**
     * Opens a page, which is closed when the current test ends. The test fails if the page complains: a
     * warning or an error in the console (a violation of its Content-Security-Policy is one), an exception,
     * or a request to another origin (from a file: any other request).
     */
    async open(url: string, options: OpenOptions = {}): Promise<Page> {
      const page = await openPage(browser, options)
      const own = complaintsOf(page, url)
      complaints = own
      onTestFinished(async () => {
        await page.context().close()
        const { expected } = options
        expect(own.filter((text) => !expected?.test(text))).toEqual([])
      })
      await options.before?.(page)
      await page.goto(url)
      return page
    },
  }
}

/** An empty page in a context of its own. */
export async function openPage(browser: Browser, view: View = {}): Promise<Page> {
  const { width = 1_280, height = 900, theme = 'light', reducedMotion = false } = view
  const context = await browser.newContext({
    viewport: { width, height },
    isMobile: width < 600,
    hasTouch: width < 600,
    colorScheme: theme,
    reducedMotion: reducedMotion ? 'reduce' : 'no-preference',
  })
  context.setDefaultTimeout(50_000) // on a machine that does other things as well
  return await context.newPage()
}

/** What the page complains about from now on. */
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

/** What axe-core finds wrong with the page as it is now, one line for each element. */
export async function accessibilityFaults(page: Page): Promise<string[]> {
  await page.evaluate(TRANSITIONS_ENDED) // colours in between are no state of the page
  await page.evaluate(axe.source)
  const { violations } = await page.evaluate<Pick<axe.AxeResults, 'violations'>>(
    "axe.run({ resultTypes: ['violations'] })",
  )
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, any }) => `${id}: ${help}: ${html} ${any.map(({ message }) => message)}`),
  )
}

/** By how many CSS pixels the page is wider than its window. */
export const overflowOf = (page: Page): Promise<number> =>
  page.evaluate<number>(
    'document.documentElement.scrollWidth - document.documentElement.clientWidth',
  )
