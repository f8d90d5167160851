import { chromiumPath } from '@onetrip/stack/testing/find-chromium.ts'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { startTestStack } from '@onetrip/stack/testing/stack.ts'
import { describe, expect, onTestFinished, test } from 'vitest'
import { demoPagesOfThisFile, expectGood, views } from './demo-page.ts'

describe.skipIf(!chromiumPath)('when Redis is killed', () => {
  const browser = demoPagesOfThisFile()

  test('the page shows the outage and recovers when Redis is back', async () => {
    const redis = await redisForThisTest()
    const stack = await startTestStack({ REDIS_URL: `unix://${redis.socket}` })
    onTestFinished(stack.stop)
    const expected = /status of 503/
    const [demo, narrow] = await Promise.all([
      browser.open(stack.url, { ...views[0], expected }),
      browser.open(stack.url, { ...views[1], expected }),
    ])
    await demo.logIn('ada')
    await narrow.logIn('grace')
    await narrow.loggedInAs('grace').waitFor()
    await demo.item('lamp').click()
    await expect.poll(() => demo.item('lamp').innerText()).toContain('1 view')

    redis.program.signal('SIGKILL')
    await demo.outage.waitFor()
    expect(await demo.outage.innerText()).toContain('Redis does not answer')
    await narrow.outage.waitFor()
    for (const page of [demo, narrow]) {
      await expectGood(page, `Redis is down, ${page === demo ? 'wide' : 'narrow'}`)
    }
    // A page opened during the outage loads, shows the outage, and restores its user afterwards.
    await demo.page.reload()
    await demo.outage.waitFor()

    await redis.restart()
    for (const page of [demo, narrow]) await page.outage.waitFor({ state: 'hidden' })
    expect(await narrow.loggedInAs('grace').isVisible()).toBe(true)
    await demo.loggedInAs('ada').waitFor()
    await demo.item('lamp').click()
    await expect.poll(() => demo.item('lamp').innerText()).toContain('2 views')
  })
})
