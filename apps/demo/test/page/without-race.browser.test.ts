import { chromiumPath } from '@onetrip/stack/testing/find-chromium.ts'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { describe, expect, test } from 'vitest'
import { apiProcessForThisTest } from '../../../api/test/api-process.ts'
import { demoProgram } from '../support.ts'
import { demoPagesOfThisFile } from './demo-page.ts'

describe.skipIf(!chromiumPath)('without a demo service', () => {
  const redis = redisOfThisFile()
  const browser = demoPagesOfThisFile()

  // Repeated: when a window of five minutes ends between the logins, the limit counts from zero.
  test('the page reports that there is no race, and the limit of logins', {
    retry: 1,
  }, async () => {
    const { url } = await apiProcessForThisTest(
      { REDIS_URL: `unix://${redis.socket}`, LOGIN_LIMIT_PER_USER: '1' },
      demoProgram,
    )
    const demo = await browser.open(url, { expected: /status of 429/ })
    await demo.page.getByText('No demo service is running').waitFor()
    for (const hidden of [demo.race, demo.wire]) expect(await hidden.isVisible()).toBe(false)
    await demo.logIn('ada')
    await demo.loggedInAs('ada').waitFor()
    await demo.item('lamp').click()
    await expect.poll(() => demo.item('lamp').innerText()).toContain('1 view')
    await demo.logOut.click()
    await demo.logIn('ada')
    await demo.page
      .getByRole('alert')
      .filter({ hasText: /Too many|Try again in/ })
      .waitFor()
  })

  test('without a wire, as on a cluster, nothing offers to send a page view', async () => {
    const { url } = await apiProcessForThisTest(
      { REDIS_URL: `unix://${redis.socket}` },
      demoProgram,
    )
    const connections = { default: 64, minimum: 1, maximum: 256 }
    const lanes = { strategies: ['naive', 'batch'], distancesMs: [0], rounds: 5, turnSeconds: 1 }
    const json = { race: { ...lanes, connections, wire: false } }
    const demo = await browser.open(url, {
      before: (page) => page.route('**/demo', (route) => route.fulfill({ json })),
      expected: /status of 404/, // there is no stream of events
    })
    await expect.poll(() => demo.startRace.isEnabled()).toBe(true)
    const hidden = [
      demo.wire,
      demo.page.locator('#hero-wire'),
      demo.page.locator('nav a[href="#wire"]'),
    ]
    for (const part of hidden) expect(await part.isVisible()).toBe(false)
  })
})
