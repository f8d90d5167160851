import { chromiumPath } from '@onetrip/stack/testing/find-chromium.ts'
import { stackOfThisFile } from '@onetrip/stack/testing/stack.ts'
import { describe, expect, test } from 'vitest'
import {
  type DemoPage,
  demoPagesOfThisFile,
  endingSession,
  expectGood,
  views,
} from './demo-page.ts'

describe.skipIf(!chromiumPath)('the look of the page', () => {
  const stack = stackOfThisFile()
  const browser = demoPagesOfThisFile()

  test('has no animation with prefers-reduced-motion', async () => {
    const moving = async (reducedMotion: boolean) => {
      const demo = await browser.open(stack.url, { reducedMotion })
      await demo.wire.getByRole('button').click()
      await expect.poll(() => demo.wire.getByRole('img').count()).toBe(2)
      return await demo.page.evaluate<number>('document.getAnimations().length')
    }
    expect(await moving(false)).toBeGreaterThan(0)
    expect(await moving(true)).toBe(0)
  })

  test('the headline is rendered without scripts', async () => {
    const demo = await browser.open(stack.url, {
      before: (page) => page.route('**/*.js', (route) => route.abort()),
      expected: /ERR_FAILED/,
    })
    await demo.page.getByRole('heading', { level: 1 }).waitFor()
    await expectGood(demo, 'without scripts')
  })

  // The last test, because wire traces of other tests are rejected during its race.
  test('is accessible and not wider than its window in every state', async () => {
    const demos = await Promise.all(
      views.map((view) =>
        browser.open(stack.url, { ...view, reducedMotion: view.width < 600, ...endingSession }),
      ),
    )
    const inEach = async (state: string, ready: (demo: DemoPage) => Promise<unknown>) => {
      for (const [index, demo] of demos.entries()) {
        await ready(demo)
        await expectGood(demo, `${state}, ${JSON.stringify(views[index])}`)
      }
    }
    await inEach('logged out', (demo) => demo.startRace.waitFor())
    await inEach('a guest', async (demo) => {
      await demo.item('lamp').click()
      await expect.poll(() => demo.rows('Your last 25 views')).toHaveLength(1)
    })
    await inEach('logged in, the wire drawn', async (demo) => {
      await demo.logIn('ada')
      await demo.loggedInAs('ada').waitFor()
      await demo.item('lamp').click()
      await expect.poll(() => demo.rows('Your last 25 views')).toHaveLength(1)
      await demo.wire.getByRole('button').click()
      await expect.poll(() => demo.wire.getByRole('img').count()).toBe(2)
    })
    for (const [index, demo] of demos.entries()) {
      await demo.chooseLightLoad()
      do {
        if (!(await demo.progress.isVisible())) await demo.page.locator('#hero-race').click()
        await demo.progress.waitFor()
        const outOfSight = `document.querySelector('progress').getBoundingClientRect().bottom > innerHeight`
        await expect.poll(() => demo.page.evaluate(outOfSight)).toBe(false)
        await expectGood(demo, `the race running, ${JSON.stringify(views[index])}`)
      } while (!(await demo.progress.isVisible())) // the race ended before the check
    }
    await inEach('the race done', (demo) => demo.raceDone())
    await demos[0]?.raceAll.click()
    await inEach('all four done', async (demo) => {
      await expect.poll(() => demo.rates()).toHaveLength(4)
      await demo.raceDone()
    })
    for (const { page } of demos) {
      const figures = page.locator('#counters td', { hasText: 'µs' })
      await figures.evaluateAll((cells) => {
        for (const cell of cells) cell.textContent = '12,345 µs' // of a slow machine
      })
      const [hidden] = await page
        .locator('#counters')
        .evaluateAll(([table]) => [(table?.scrollWidth ?? 0) - (table?.clientWidth ?? 0)])
      expect(hidden, 'columns of the table that are out of sight').toBe(0)
    }
    await demos[0]?.page.getByRole('button', { name: 'Log out all others' }).click()
    await demos[1]?.signedOut.waitFor()
    await inEach('signed out elsewhere', (demo) => demo.startRace.waitFor())
  }, 360_000)
})
