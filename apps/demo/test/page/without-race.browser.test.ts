import { chromiumPath } from '@onetrip/stack/testing/find-chromium.ts'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { describe, expect, test } from 'vitest'
import { apiProcessForThisTest } from '../../../api/test/api-process.ts'
import { demoProgram } from '../support.ts'
import { demoPagesOfThisFile } from './demo-page.ts'

describe.skipIf(!chromiumPath)('without a demo service', () => {
  const redis = redisOfThisFile()
  const browser = demoPagesOfThisFile()

  test('the page reports that there is no race, and the limit of logins', async () => {
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
})
