import { chromiumPath } from '@onetrip/stack/testing/find-chromium.ts'
import { stackOfThisFile } from '@onetrip/stack/testing/stack.ts'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { DemoPage, demoPagesOfThisFile, endingSession } from './demo-page.ts'

const like = (pattern: RegExp) => expect.stringMatching(pattern)

describe.skipIf(!chromiumPath)('the shop', () => {
  const stack = stackOfThisFile()
  const browser = demoPagesOfThisFile()

  test('a user logs in, views items, sees the counts change on all pages, and logs out', async () => {
    const demo = await browser.open(stack.url, { ...endingSession, reducedMotion: false })
    const other = await browser.open(stack.url)
    await demo.logIn('ada')
    await demo.loggedInAs('ada').waitFor()
    await demo.item('lamp').click()
    await expect.poll(() => demo.item('lamp').innerText()).toContain('1 view')
    await demo.item('lamp').click()
    await expect.poll(() => demo.item('lamp').innerText()).toContain('2 views')
    await demo.item('kite').click()
    await expect.poll(() => demo.rows('Most viewed')).toEqual(['Lamp\n2 views', 'Kite\n1 view'])
    await expect
      .poll(() => demo.rows('Your last 25 views'))
      .toMatchObject([/^Kite/, /^Lamp/].map(like))
    await expect.poll(() => demo.rows('Recently seen')).toContainEqual(like(/^ada/))
    await expect.poll(() => other.item('lamp').innerText()).toContain('2 views')
    await demo.page.reload()
    await demo.loggedInAs('ada').waitFor()
    await demo.logOut.click()
    await demo.name.waitFor()
    await demo.page.reload()
    await demo.name.waitFor()
    expect(await demo.loggedInAs('ada').isVisible()).toBe(false)
  })

  test('a view whose responses are lost is not reported as not counted', async () => {
    const before = async (page: Page) => {
      await page.clock.install()
      await page.route(`${stack.url}/views`, async (route) => {
        await route.fetch() // the API counts the view
        await route.abort()
      })
    }
    const demo = await browser.open(stack.url, { before, expected: /net::ERR_FAILED/ })
    await demo.logIn('margaret')
    await demo.loggedInAs('margaret').waitFor()
    await demo.item('guitar').click()
    const problem = demo.region('The shop').getByRole('alert').filter({ hasText: 'guitar' })
    await expect
      .poll(async () => {
        await demo.page.clock.fastForward(10_000) // to the next attempt
        return await problem.innerText()
      })
      .toContain('The view of the guitar may have been counted.')
    await expect.poll(() => demo.item('guitar').innerText()).toContain('1 view')
  })

  test('a name typed during the page load stays, with the focus', async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    const before = (page: Page) => {
      return page.route('**/demo', (route) => released.then(() => route.continue()))
    }
    const demo = await browser.open(stack.url, { before, ...endingSession })
    await demo.name.pressSequentially('a')
    release()
    await demo.wire.getByRole('button').and(demo.page.locator(':enabled')).waitFor()
    await demo.page.keyboard.type('da')
    await demo.page.keyboard.press('Enter')
    await demo.loggedInAs('ada').waitFor()
    await demo.logOut.click()
    await demo.name.waitFor()
  })

  test('what a guest views is kept at login, also after a reload', async () => {
    const demo = await browser.open(stack.url, endingSession)
    await demo.item('globe').click()
    await demo.page.getByText('You are a guest').waitFor()
    await expect.poll(() => demo.rows('Your last 25 views')).toEqual([like(/^Globe/)])
    await demo.page.reload()
    await demo.page.getByText('You are a guest').waitFor()
    await demo.logIn('grace')
    await demo.loggedInAs('grace').waitFor()
    await demo.item('clock').click()
    const kept = [like(/^Clock\n[^,]+$/), like(/^Globe\n.*, before login$/)]
    await expect.poll(() => demo.rows('Your last 25 views')).toEqual(kept)
  })

  test('a login in one tab is seen by the other tabs of the browser', async () => {
    const demo = await browser.open(stack.url, endingSession)
    await demo.item('globe').click()
    await demo.page.getByText('You are a guest').waitFor()
    const tab = new DemoPage(await demo.page.context().newPage())
    await tab.page.goto(`${stack.url}/`)
    await tab.page.getByText('You are a guest').waitFor()
    await tab.logIn('barbara')
    await demo.loggedInAs('barbara').waitFor()
  })

  test('a user logs out one other browser, then all others, which see it at once', async () => {
    const before = (page: Page) => page.clock.install()
    const open = () => browser.open(stack.url, { before, ...endingSession })
    const others = [await open(), await open(), await open()]
    const own = await browser.open(stack.url)
    for (const demo of [...others, own]) {
      await demo.logIn('alan')
      await demo.loggedInAs('alan').waitFor()
    }
    // No more polling: the message comes with the event stream.
    for (const { page } of others) await page.clock.pauseAt(Date.now() + 60_000)
    const isListed = () => own.sessions.allInnerTexts()
    const other = like(/^Chrome on /)
    await expect.poll(isListed).toEqual([like(/^This browser: Chrome on /), other, other, other])
    await own.page.getByRole('button', { name: 'Log out that browser' }).last().click()
    await others[0]?.signedOut.waitFor()
    await expect.poll(isListed).toHaveLength(3)
    await own.page.getByRole('button', { name: 'Log out all others' }).click()
    for (const demo of others) await demo.signedOut.waitFor()
    await expect.poll(isListed).toHaveLength(1)
    await own.loggedInAs('alan').waitFor()
    // The ended session of the cookie does not keep its browser from starting another one.
    await others[0]?.item('lamp').click()
    await others[0]?.page.getByText('You are a guest').waitFor()
  })

  test('all controls work with the keyboard', async () => {
    const demo = await browser.open(stack.url, endingSession)
    const { keyboard } = demo.page
    const focused = demo.page.locator(':focus')
    /** Presses Tab until an element has the focus, which must be visible. */
    const tabTo = async (name: string | RegExp) => {
      for (let presses = 0; presses < 60; presses++) {
        await keyboard.press('Tab')
        const text = (await focused.getAttribute('name')) ?? (await focused.innerText())
        const outline = await demo.page.evaluate<string>(
          'getComputedStyle(document.activeElement).outlineStyle',
        )
        expect(outline, text).not.toBe('none')
        if (text.match(name)) return
      }
      throw new Error(`Tab does not reach ${name}`)
    }
    await tabTo(/^Skip to the content$/)
    await keyboard.press('Enter')
    await demo.wire.getByRole('button').and(demo.page.locator(':enabled')).waitFor()
    await tabTo(/^distance$/)
    await keyboard.press('ArrowRight')
    expect(await demo.race.getByLabel('0.3 ms').isChecked()).toBe(true)
    await tabTo(/^Send one page view$/)
    await keyboard.press('Enter')
    await expect.poll(() => demo.wire.getByRole('img').count()).toBe(2)
    await tabTo(/^user$/)
    await keyboard.type('edsger')
    await keyboard.press('Enter')
    await demo.loggedInAs('edsger').waitFor()
    // Logging in moves the focus to the first item.
    await expect.poll(() => focused.innerText()).toMatch(/^Teapot/)
    await keyboard.press('Enter')
    await expect.poll(() => demo.item('teapot').innerText()).toContain('1 view')
    await tabTo(/^Log out$/)
    await keyboard.press('Space')
    await demo.name.waitFor()
    await expect.poll(() => focused.getAttribute('name')).toBe('user')
  })
})
