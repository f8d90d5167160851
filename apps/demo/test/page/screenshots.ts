// Takes screenshots of the demo page's main states in both themes and two widths, and checks the time to its
// first contentful paint: npm run screenshots -- FOLDER. Exits with 1 if that takes longer than a second.

import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { launchChromium, openPage } from '@onetrip/stack/testing/browser.ts'
import { startTestStack } from '@onetrip/stack/testing/stack.ts'
import { DemoPage } from './demo-page.ts'

const MAX_FIRST_CONTENT_MS = 1_000
const LOADS = 5

/** First contentful paint in milliseconds after the start of the load. */
const FIRST_CONTENT = `new Promise((resolve) => {
  const found = (list) => list.getEntriesByName('first-contentful-paint').forEach(({ startTime }) => resolve(startTime))
  new PerformanceObserver(found).observe({ type: 'paint', buffered: true })
})`

/** Resolves when all animations have ended. */
const STILL = 'Promise.all(document.getAnimations().map(({ finished }) => finished)).then(() => {})'

const folder = process.argv[2]
if (!folder) {
  console.error('Usage: npm run screenshots -- FOLDER')
  process.exit(2)
}
await mkdir(folder, { recursive: true })
const stack = await startTestStack()
const browser = await launchChromium()
try {
  await firstContent()
  await photographs(folder)
} finally {
  await browser.close()
  await stack.stop()
}

/** Loads the page with an empty cache each time. */
async function firstContent(): Promise<void> {
  const times: number[] = []
  for (let load = 0; load < LOADS; load++) {
    const page = await openPage(browser)
    await page.goto(`${stack.url}/`)
    times.push(await page.evaluate<number>(FIRST_CONTENT))
    await page.context().close()
  }
  const ms = times.toSorted((a, b) => a - b)[Math.floor(LOADS / 2)] ?? 0
  console.log(`First content after ${ms.toFixed(0)} ms (median of ${LOADS} loads)`)
  if (ms > MAX_FIRST_CONTENT_MS) {
    console.error(`That is more than ${MAX_FIRST_CONTENT_MS} ms. Is the machine busy?`)
    process.exitCode = 1
  }
}

async function photographs(folder: string): Promise<void> {
  const views = [1_280, 390].flatMap((width) =>
    (['light', 'dark'] as const).map((theme) => ({ width, theme })),
  )
  const demos = await Promise.all(
    views.map(async (view) => {
      const demo = new DemoPage(await openPage(browser, view))
      await demo.page.goto(`${stack.url}/`)
      return { demo, name: `${view.width}-${view.theme}` }
    }),
  )
  const each = async (act: (demo: DemoPage) => Promise<unknown>) => {
    for (const { demo } of demos) await act(demo)
  }
  const photograph = async (state: string) => {
    for (const { demo, name } of demos) {
      await demo.page.evaluate('scrollTo(0, 0)')
      const path = join(folder, `${state}-${name}.png`)
      await demo.page.screenshot({ path, fullPage: true })
      console.log(path)
    }
  }

  await each((demo) => demo.page.evaluate(STILL))
  await photograph('1-logged-out')

  await each(async (demo) => {
    await demo.item('globe').click() // as a guest
    await demo.page.getByText('You are a guest').waitFor()
    await demo.logIn('ada')
    await demo.loggedInAs('ada').waitFor()
    for (const item of ['lamp', 'kite', 'teapot']) await demo.item(item).click()
    await demo.wire.getByRole('button').click()
    await demo.wire.getByRole('img').nth(1).waitFor()
    await demo.page.evaluate(STILL)
  })
  await photograph('2-logged-in-and-wire')

  await demos[0]?.demo.startRace.click()
  await each((demo) => demo.race.getByText('Round 3 of').waitFor())
  await photograph('3-race-running')
  await each((demo) => demo.sentence.waitFor())
  await photograph('4-race-done')
  await demos[0]?.demo.raceAll.click()
  await each((demo) => demo.race.locator('.rate').nth(3).waitFor())
  await each((demo) => demo.sentence.waitFor())
  await photograph('5-all-four-done')

  const link = await demos[0]?.demo.page.locator('#race-share a').first().getAttribute('href')
  await each((demo) => demo.page.goto(`${stack.url}${link}`))
  await photograph('6-result')
  await each((demo) => demo.page.goto(`${stack.url}/`))
  await each((demo) => demo.loggedInAs('ada').waitFor())

  await demos[0]?.demo.page.getByRole('button', { name: 'Log out all others' }).click()
  for (const { demo } of demos.slice(1)) await demo.signedOut.waitFor()
  await photograph('7-signed-out-elsewhere')

  const redis = stack.redis.pid ?? 0
  process.kill(redis, 'SIGSTOP')
  try {
    await each((demo) => demo.outage.waitFor())
    await photograph('8-redis-away')
  } finally {
    process.kill(redis, 'SIGCONT')
  }
}
