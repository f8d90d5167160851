import { chromiumPath } from '@onetrip/stack/testing/find-chromium.ts'
import { stackOfThisFile } from '@onetrip/stack/testing/stack.ts'
import { describe, expect, test } from 'vitest'
import { figure } from '../../page/scripts/format.js'
import type { Done, RaceEvent, RaceEvents, Totals } from '../../src/events.ts'
import { demoPagesOfThisFile, expectGood, views } from './demo-page.ts'
import { listenToRaces } from './race-events.ts'

describe.skipIf(!chromiumPath)('a race', () => {
  const stack = stackOfThisFile()
  const browser = demoPagesOfThisFile()

  test('starts with one button, and ends with a sentence and the figures of its events', async () => {
    const events = await listenToRaces(stack.url)
    const demo = await browser.open(stack.url, { reducedMotion: false })
    const withoutEvents = await browser.open(stack.url, {
      before: (page) => page.route('**/demo/race/events', (route) => route.abort()),
      expected: /status of 409|ERR_FAILED/,
    })
    await demo.choose('Second service', 'pipeline')
    await demo.chooseLightLoad()
    await demo.startRace.click()
    const input = { lanes: ['naive', 'pipeline'], connections: 2, distanceMs: 48 }
    await expect.poll(() => eventOf(events, 'started')).toMatchObject(input)

    // A second race is rejected, with a message on a page that gets no events of the first.
    await withoutEvents.startRace.click()
    await withoutEvents.race.getByRole('alert').filter({ hasText: 'A race is running' }).waitFor()
    // A page opened during the race shows it and cannot start another.
    const other = await browser.open(stack.url)
    await expect.poll(() => other.startRace.getAttribute('aria-disabled')).toBe('true')
    expect(await other.race.getByLabel('Second service').inputValue()).toBe('pipeline')

    // The charts are drawn during the race.
    await expect
      .poll(async () => [
        await demo.progress.isVisible(),
        ...(await demo.linesOfCharts(['naive', 'pipeline'])),
      ])
      .toEqual([true, 2, 2])

    await expect.poll(() => endOf(events), { timeout: 120_000 }).toBeDefined()
    expect(endOf(events)).toHaveProperty('lanes.length', 2)
    const done = eventOf(events, 'done') as Done
    for (const page of [demo, other, await browser.open(stack.url)]) {
      await page.race.getByText(done.sentence, { exact: true }).waitFor()
      expect(await page.totals()).toEqual(expectedTotals(done))
      expect(await page.rates()).toEqual(
        done.lanes.map(({ requestsPerSecond }) => figure(requestsPerSecond.median)),
      )
    }
    const rates = done.lanes.map((lane) => lane.requestsPerSecond.median)
    const [shorter = 0, longer = 0] = (await demo.barWidths()).toSorted((a, b) => a - b)
    expect(shorter / longer).toBeCloseTo(Math.min(...rates) / Math.max(...rates), 2)
    expect(await demo.page.locator('#hero-ratio').innerText()).toBe(
      `× ${figure(done.ratio?.median ?? 0)}`,
    )
    for (const view of views) {
      const result = await browser.open(stack.url, view)
      await result.page.goto(`${stack.url}/race/${done.id}`)
      await result.page.getByText(done.sentence).first().waitFor()
      await expectGood(result, `the page of a result, ${view.width}`)
    }
    expect(events.filter(({ name }) => name === 'started')).toHaveLength(1)
    await expect.poll(() => demo.startRace.getAttribute('aria-disabled')).toBeNull()

    const command = done.command ?? ''
    expect(command).toContain('--variants naive,pipeline --connections 2 ')
    expect(await demo.command.innerText()).toBe(command)
    await demo.page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await demo.race.getByRole('button', { name: 'Copy' }).click()
    await demo.race.getByRole('button', { name: 'Copied' }).waitFor()
    expect(await demo.page.evaluate('navigator.clipboard.readText()')).toBe(command)
  }, 240_000)

  test('of all four strategies shows what each step gives, until the next race', async () => {
    const events = await listenToRaces(stack.url)
    const demo = await browser.open(stack.url)
    const lanes = ['naive', 'sequential', 'pipeline', 'batch']
    await expect.poll(() => demo.raceAll.isEnabled()).toBe(true)
    await demo.chooseLightLoad()
    await demo.raceAll.press('Enter')
    await expect.poll(() => demo.linesOfCharts(lanes)).toEqual([4, 4])
    for (const start of [demo.startRace, demo.raceAll]) {
      expect(await start.getAttribute('aria-disabled')).toBe('true')
    }
    // The wire still compares the two services of the form.
    expect(await demo.race.getByLabel('Second service').inputValue()).toBe('batch')
    await expect.poll(() => endOf(events), { timeout: 120_000 }).toBeDefined()
    expect(endOf(events)).toHaveProperty('lanes.length', 4)
    const done = eventOf(events, 'done') as Done
    const steps = demo.race.getByRole('region', { name: 'Which step gives what' })
    for (const step of done.steps) await steps.getByText(step, { exact: true }).waitFor()
    expect(await demo.totals()).toEqual(expectedTotals(done))
    expect(await demo.rates()).toHaveLength(4)

    await demo.startRace.click()
    await expect.poll(() => demo.rates()).toHaveLength(2)
    for (const step of done.steps) {
      expect(await steps.getByText(step, { exact: true }).isVisible()).toBe(false)
    }
  }, 240_000)
})

/** Data of the latest event with this name. */
function eventOf<Name extends keyof RaceEvents>(
  events: readonly RaceEvent[],
  name: Name,
): RaceEvents[Name] | undefined {
  return events.findLast((event) => event.name === name)?.data as RaceEvents[Name] | undefined
}

/** Expected cells of the page's table, by row name. */
function expectedTotals({ lanes }: Done): Record<string, string[]> {
  const row = (textOf: (totals: Totals) => string) => lanes.map(textOf)
  return {
    'Page views answered': row(({ requests }) => figure(requests)),
    'Redis connections opened': row(({ connectionsOpened }) => figure(connectionsOpened)),
    'Round trips per page view without connection setup': row(({ roundTrips, requests }) =>
      figure(roundTrips / requests),
    ),
    'Commands per page view': row(({ commands, requests }) => figure(commands / requests)),
    'CPU time of Redis per page view': row(
      ({ redisCpuUs, requests }) => `${figure(redisCpuUs / requests)} µs`,
    ),
    'CPU time of the API per page view': row(
      ({ apiCpuUs, requests }) => `${figure(apiCpuUs / requests)} µs`,
    ),
    Errors: row(({ errors }) => figure(errors)),
  }
}

/** The result of the latest race, or why it failed. */
const endOf = (events: readonly RaceEvent[]) => eventOf(events, 'failed') ?? eventOf(events, 'done')
