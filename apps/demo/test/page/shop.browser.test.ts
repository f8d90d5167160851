import { chromiumPath } from '@onetrip/stack/testing/find-chromium.ts'
import { stackOfThisFile } from '@onetrip/stack/testing/stack.ts'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { demoPagesOfThisFile, loggingOut } from './demo-page.ts'

const like = (pattern: RegExp) => expect.stringMatching(pattern)

describe.skipIf(!chromiumPath)('the shop', () => {
  const stack = stackOfThisFile()
  const browser = demoPagesOfThisFile()

  test('a user logs in, views items, sees the counts change on all pages, and logs out', async () => {
    const demo = await browser.open(stack.url, loggingOut)
    const other = await browser.open(stack.url)
    await demo.item('lamp').click()
    await demo.page.getByText('Log in first: a view belongs').waitFor()
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
    const demo = await browser.open(stack.url, { before, ...loggingOut })
    await demo.name.pressSequentially('a')
    release()
    await demo.wire.getByRole('button').and(demo.page.locator(':enabled')).waitFor()
    await demo.page.keyboard.type('da')
    await demo.page.keyboard.press('Enter')
    await demo.loggedInAs('ada').waitFor()
    await demo.logOut.click()
    await demo.name.waitFor()
  })

  test('a user logs out their other browser', async () => {
    // The other browser sends requests with an ended session.
    const other = await browser.open(stack.url, { expected: /status of 401/ })
    const own = await browser.open(stack.url)
    await other.logIn('alan')
    await other.loggedInAs('alan').waitFor()
    await own.logIn('alan')
    await expect.poll(() => own.sessions.count()).toBe(2)
    await own.page.getByRole('button', { name: 'Log out that browser' }).click()
    await expect
      .poll(() => own.sessions.allInnerTexts())
      .toEqual([expect.stringContaining('This browser')])
    await other.page.getByText('Your session has ended').waitFor()
    expect(await other.name.isVisible()).toBe(true)
    await own.loggedInAs('alan').waitFor()
  })

  test('all controls work with the keyboard', async () => {
    const demo = await browser.open(stack.url, loggingOut)
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
