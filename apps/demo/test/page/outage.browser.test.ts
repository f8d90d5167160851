import { chromiumPath } from '@onetrip/stack/testing/find-chromium.ts'
import { redisForThisTest } from '@onetrip/stack/testing/redis.ts'
import { startTestStack } from '@onetrip/stack/testing/stack.ts'
import { describe, expect, onTestFinished, test } from 'vitest'
import { demoPagesOfThisFile } from './demo-page.ts'

/** The page of a stack on a Redis that the test can kill. */
async function demoOnRedis(browser: ReturnType<typeof demoPagesOfThisFile>) {
  const redis = await redisForThisTest()
  const stack = await startTestStack({ REDIS_URL: `unix://${redis.socket}` })
  onTestFinished(stack.stop)
  return { redis, demo: await browser.open(stack.url, { expected: /status of 503/ }) }
}

describe.skipIf(!chromiumPath)('when Redis is killed', () => {
  const browser = demoPagesOfThisFile()

  test('the page shows the outage and recovers when Redis is back', async () => {
    const { redis, demo } = await demoOnRedis(browser)
    await demo.logIn('ada')
    await demo.item('lamp').click()
    await expect.poll(() => demo.item('lamp').innerText()).toContain('1 view')

    redis.program.signal('SIGKILL')
    await demo.outage.waitFor()
    expect(await demo.outage.innerText()).toContain('Redis does not answer')
    // A page opened during the outage loads, shows the outage, and restores its user afterwards.
    await demo.page.reload()
    await demo.outage.waitFor()

    await redis.restart()
    await demo.outage.waitFor({ state: 'hidden' })
    await demo.loggedInAs('ada').waitFor()
    await demo.item('lamp').click()
    await expect.poll(() => demo.item('lamp').innerText()).toContain('2 views')
  })

  test('a running race ends with the reason, and the next one can start', async () => {
    const { redis, demo } = await demoOnRedis(browser)
    await demo.startRace.click()
    await demo.race.getByText(/^Round \d/).waitFor()
    redis.program.signal('SIGKILL')
    await demo.race.getByText(/The race ended early\. Redis/).waitFor()
    await redis.restart()
    await demo.outage.waitFor({ state: 'hidden' })
    await demo.startRace.click()
    await demo.race.getByText(/^Round \d/).waitFor()
  })
})
