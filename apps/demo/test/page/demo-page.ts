import { join } from 'node:path'
import {
  accessibilityFaults,
  browserOfThisFile,
  type OpenOptions,
  overflowOf,
} from '@onetrip/stack/testing/browser.ts'
import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'

/** Actions of a user on the demo page. Finds elements like a screen reader: by role and name. */
export class DemoPage {
  readonly page: Page

  constructor(page: Page) {
    this.page = page
  }

  region(name: string): Locator {
    return this.page.getByRole('region', { name, exact: true })
  }

  get race(): Locator {
    return this.region('The race')
  }

  get wire(): Locator {
    return this.region('What happens on the wire')
  }

  /** Found without a name, because the name changes during a race. */
  get startRace(): Locator {
    return this.race.getByRole('button').first()
  }

  async choose(label: string, value: string): Promise<void> {
    await this.race.getByLabel(label).selectOption(value)
  }

  /**
   * Settings with which a race needs little CPU time: the other test files run at the same time. With 48 ms to
   * Redis, the relay mostly waits.
   */
  async chooseLightLoad(): Promise<void> {
    await this.choose('HTTP connections', '2')
    await this.race.getByLabel('48 ms').check()
  }

  /** Requests per second of both lanes. */
  rates(): Promise<string[]> {
    return this.race.locator('.rate').allInnerTexts()
  }

  /** Widths of the bars of all lanes, in pixels, after their transitions. */
  barWidths(): Promise<number[]> {
    return this.page.evaluate<number[]>(BAR_WIDTHS)
  }

  /** Cells of the race's table, by row name. */
  async totals(): Promise<Record<string, string[]>> {
    const rows = await this.race.getByRole('table').locator('tbody tr').all()
    const cells = await Promise.all(rows.map((row) => row.locator('th, td').allInnerTexts()))
    return Object.fromEntries(cells.map(([name = '', ...values]) => [name, values]))
  }

  /** Visible while a race runs. */
  get progress(): Locator {
    return this.race.getByRole('progressbar')
  }

  /**
   * Waits for the result of the race, for up to two minutes: on a busy machine, its APIs start slowly. Fails with the
   * page's message if the race fails.
   */
  async raceDone(): Promise<void> {
    const failed = this.race.locator('#race-failed')
    const end = this.race.locator('#race-sentence').or(failed).filter({ visible: true })
    await end.waitFor({ timeout: 120_000 })
    expect(await failed.innerText()).toBe('')
  }

  /** The command that repeats the race. */
  get command(): Locator {
    return this.race.locator('#race-command')
  }

  get raceAll(): Locator {
    return this.race.getByRole('button', { name: 'Race all four' })
  }

  /** Number of lines in each chart, detected by the colours of the strategies. */
  linesOfCharts(strategies: readonly string[]): Promise<number[]> {
    return this.page.evaluate<number[]>(`(${COUNT_LINES})(${JSON.stringify(strategies)})`)
  }

  get name(): Locator {
    return this.page.getByLabel('Your name')
  }

  async logIn(user: string): Promise<void> {
    await this.name.fill(user)
    await this.page.getByRole('button', { name: 'Log in', exact: true }).click()
  }

  /** Visible when a user is logged in. */
  loggedInAs(user: string): Locator {
    return this.page.getByRole('heading', { name: `Logged in as ${user}`, exact: true })
  }

  get logOut(): Locator {
    return this.page.getByRole('button', { name: 'Log out', exact: true })
  }

  /** The button of an item; its text has the number of views. */
  item(item: string): Locator {
    return this.page
      .getByRole('list', { name: 'Items to view' })
      .getByRole('button', { name: item })
  }

  /** The rows of a list of the shop, as text. */
  rows(list: 'Most viewed' | 'Your last 25 views' | 'Recently seen'): Promise<string[]> {
    return this.region(list).getByRole('listitem').allInnerTexts()
  }

  /** The message that Redis or the API is down; hidden while both answer. */
  get outage(): Locator {
    return this.page.getByRole('status').filter({ hasText: 'does not answer' })
  }

  /** The message of the login form about the end of a session. */
  get signedOut(): Locator {
    return this.page.getByRole('alert').filter({ hasText: 'You were signed out elsewhere.' })
  }

  get sessions(): Locator {
    return this.page.getByRole('list', { name: 'Your sessions' }).getByRole('listitem')
  }
}

/** Both themes, and both widths. */
export const views = [
  { width: 1_280, theme: 'light' },
  { width: 360, theme: 'dark' },
] as const

/** Fails if axe-core finds a violation or the page is wider than its window. Saves a picture in `$SCREENSHOTS`. */
export async function expectGood({ page }: DemoPage, state: string): Promise<void> {
  const { SCREENSHOTS: folder } = process.env
  const path = join(folder ?? '', `${state.replaceAll(/\W+/g, '-')}.png`)
  if (folder) await page.screenshot({ path, fullPage: true })
  expect(await accessibilityFaults(page), state).toEqual([])
  expect(await overflowOf(page), state).toBe(0)
}

/** Like `browserOfThisFile`, for the demo page. */
export function demoPagesOfThisFile() {
  const browser = browserOfThisFile()
  return {
    async open(url: string, options?: OpenOptions): Promise<DemoPage> {
      return new DemoPage(await browser.open(`${url}/`, options))
    },
  }
}

const BAR_WIDTHS = `Promise.allSettled(document.getAnimations().map(({ finished }) => finished))
  .then(() => [...document.querySelectorAll('.bar')].map((bar) => bar.getBoundingClientRect().width))`

/** A chart shows the line of a strategy if at least 20 pixels have its colour. */
const COUNT_LINES = `(strategies) => {
  const probe = document.body.appendChild(document.createElement('span'))
  const colours = strategies.map((name) => {
    probe.style.color = 'var(--colour-' + name + ', var(--colour-other))'
    return getComputedStyle(probe).color.match(/\\d+/g).map(Number)
  })
  probe.remove()
  return [...document.querySelectorAll('canvas')].map((canvas) => {
    const { width, height } = canvas
    const copy = new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true })
    copy.drawImage(canvas, 0, 0)
    const { data } = copy.getImageData(0, 0, width, height)
    return colours.filter((colour) => {
      let pixels = 0
      for (let at = 0; at < data.length; at += 4) {
        if (colour.every((part, index) => data[at + index] === part) && data[at + 3] === 255) pixels++
      }
      return pixels >= 20
    }).length
  })
}`

/** For a test that ends a session, such as by a logout or a guest's login: concurrent reads of the page then get 401. */
export const endingSession = { expected: /status of 401/ }
