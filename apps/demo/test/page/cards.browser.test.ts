import { chromiumPath } from '@onetrip/stack/testing/find-chromium.ts'
import { stackOfThisFile } from '@onetrip/stack/testing/stack.ts'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { type DemoPage, demoPagesOfThisFile, loggingOut } from './demo-page.ts'

/** Logs in and scrolls to the card, which reads data only while it is visible. */
async function cardOf(demo: DemoPage, name: string, user: string) {
  await demo.logIn(user)
  await demo.loggedInAs(user).waitFor()
  const card = demo.region(name)
  await card.scrollIntoViewIfNeeded()
  return card
}

describe.skipIf(!chromiumPath)('the cards of the applications', () => {
  const stack = stackOfThisFile()
  const browser = demoPagesOfThisFile()

  test('flash sale: one piece per user until sold out', async () => {
    const ada = await browser.open(stack.url)
    const bob = await browser.open(stack.url, { expected: /status of (404|409)/ })
    const sale = await cardOf(ada, 'Flash sale', 'ada')
    const other = await cardOf(bob, 'Flash sale', 'bob')
    await other.getByRole('button', { name: 'Buy one' }).click()
    await other.getByText('The camera is not on sale yet').waitFor()

    await sale.getByLabel('Pieces').fill('1')
    await sale.getByLabel('Pieces').press('Enter')
    await sale.getByText('On sale: 1 left, 0 sold.').waitFor()
    await expect.poll(() => sale.innerText()).toMatch(/1 piece left/)
    await sale.getByRole('button', { name: 'Buy one' }).click()
    const bought = await sale.getByText(/^You bought one at [\d:]+\.$/).innerText()
    await expect.poll(() => sale.innerText()).toMatch(/0 pieces left: sold out/)
    await sale.getByRole('button', { name: 'Buy one' }).click()
    await sale.getByText(`Repeated purchase, counted once: ${bought}`).waitFor()

    await other.getByRole('button', { name: 'Buy one' }).click()
    await other.getByText('Sold out.').waitFor()
    // The card updates when another user sets the stock.
    await sale.getByLabel('Pieces').fill('8')
    await sale.getByRole('button', { name: 'Put on sale' }).click()
    await expect.poll(() => other.innerText()).toMatch(/7 pieces left/)
  })

  test('seen before: each user counts once per item', async () => {
    const demo = await browser.open(stack.url, loggingOut)
    const card = await cardOf(demo, 'Seen before', 'ada')
    await expect.poll(() => card.innerText()).toMatch(/Viewed by nobody yet/)
    const view = card.getByRole('button', { name: 'View it' })
    await view.click()
    await card.getByText('You viewed the teapot for the first time.').waitFor()
    await view.click()
    await card.getByText('You viewed the teapot before. You count once.').waitFor()
    expect(await card.innerText()).toMatch(/Viewed by about 1 person/)

    await demo.logOut.click()
    await cardOf(demo, 'Seen before', 'bob')
    await view.click()
    await expect.poll(() => card.innerText()).toMatch(/Viewed by about 2 people/)
  })

  test('feed: loaded pages stay when an entry is added', async () => {
    const demo = await browser.open(stack.url)
    const feed = await cardOf(demo, 'Feed', 'ada')
    await feed.getByText('Nothing yet.').waitFor()
    const lines = () => feed.getByRole('listitem').locator('.line').allInnerTexts()
    const newest = (from: number, count: number) =>
      Array.from({ length: count }, (_, index) => `ada line ${from - index}`)
    const post = async (number: number) => {
      await feed.getByLabel('Your text').fill(`line ${number}`)
      await feed.getByLabel('Your text').press('Enter')
      await expect.poll(lines).toContain(`ada line ${number}`)
    }
    for (let number = 1; number <= 7; number++) await post(number)
    await demo.page.reload()
    await feed.scrollIntoViewIfNeeded()
    await expect.poll(lines).toEqual(newest(7, 5))
    const older = feed.getByRole('button', { name: 'Older entries' })
    await older.click()
    await older.waitFor({ state: 'hidden' })
    await expect.poll(lines).toEqual(newest(7, 7))
    await post(8)
    await expect.poll(lines).toEqual(newest(8, 8))
  })

  test('feed: typed text is never lost', async () => {
    const demo = await browser.open(stack.url, { expected: /ERR_FAILED/ })
    const feed = await cardOf(demo, 'Feed', 'edsger')
    const line = feed.getByLabel('Your text')
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    await demo.page.route('**/feed', (route) => released.then(() => route.continue()))
    await line.fill('posted slowly')
    await line.press('Enter')
    await line.fill('typed meanwhile')
    release()
    await feed.getByText('edsger posted slowly').waitFor()
    expect(await line.inputValue()).toBe('typed meanwhile')
    await demo.page.unroute('**/feed')
    await demo.page.route('**/feed', (route) => route.abort())
    await line.press('Enter')
    await feed.getByRole('alert').waitFor()
    expect(await line.inputValue()).toBe('typed meanwhile')
  })

  test('risk: logins are recorded, and unusual ones reported', async () => {
    const demo = await browser.open(stack.url, loggingOut)
    const card = await cardOf(demo, 'Risk of a login', 'grace')
    await expect
      .poll(() => card.innerText())
      .toMatch(/Unusual: first login\s+1 login recorded, the last /)
    await demo.logOut.click()
    await demo.name.waitFor()
    await expect.poll(() => card.innerText()).not.toMatch(/recorded/)
    await cardOf(demo, 'Risk of a login', 'grace')
    await expect.poll(() => card.innerText()).toMatch(/2 logins recorded/)
    await card.getByRole('button', { name: 'Check again' }).click()
    await expect
      .poll(() => demo.page.locator('#announcements').innerText())
      .toMatch(/Nothing unusual: 2 logins recorded/)
  })

  test('controls are disabled before a login, and cards read nothing while invisible', async () => {
    const requested = new Set<string>()
    const before = async (page: Page) => {
      page.on('request', (request) => requested.add(new URL(request.url()).pathname))
    }
    const demo = await browser.open(stack.url, { before, height: 320 })
    const section = demo.region('More examples')
    await section.scrollIntoViewIfNeeded()
    expect(await section.getByRole('button').and(demo.page.locator(':enabled')).count()).toBe(0)
    await section.getByRole('link', { name: 'Log in' }).click()
    await demo.page.keyboard.press('Tab')
    await expect.poll(() => demo.page.locator(':focus').getAttribute('name')).toBe('user')
    const top = async () => (await section.boundingBox())?.y
    await expect.poll(top).toBeGreaterThan(500) // the page scrolls smoothly
    await demo.logIn('ada')
    await section.getByRole('link', { name: 'Log in' }).waitFor({ state: 'hidden' })
    await expect
      .poll(() => section.getByRole('button').and(demo.page.locator(':enabled')).count())
      .toBeGreaterThanOrEqual(5)
    expect(requested).not.toContain('/feed')
    await section.scrollIntoViewIfNeeded()
    await expect.poll(() => requested).toContain('/feed')
  })
})
