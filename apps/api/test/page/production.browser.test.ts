import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { chromiumPath } from '@onetrip/stack/testing/find-chromium.ts'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { describe, expect, test } from 'vitest'
import { hashPassword } from '../../src/passwords/hash.ts'
import { apiProcessForThisTest } from '../api-process.ts'
import { demoPagesOfThisFile } from './demo-page.ts'

const PASSWORD = 'correct horse battery staple'

describe.skipIf(!chromiumPath)('in production', () => {
  const redis = redisOfThisFile()
  const browser = demoPagesOfThisFile()

  test('the page asks for a password, and reports the rate limit and that there is no race', async () => {
    const users = join(await temporaryFolder(), 'users')
    await writeFile(users, `ada:${await hashPassword(PASSWORD)}\n`, { mode: 0o600 })
    const { url } = await apiProcessForThisTest({
      REDIS_URL: `unix://${redis.socket}`,
      NODE_ENV: 'production',
      AUTH: 'password',
      USERS_FILE: users,
      LOGIN_LIMIT_PER_USER: '2',
    })
    const demo = await browser.open(url, { expected: /status of (401|429)/ })
    await demo.page.getByText('No demo service is running').waitFor()
    for (const hidden of [demo.race, demo.wire]) expect(await hidden.isVisible()).toBe(false)
    const refused = await fetch(`${url}/demo/race`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ lanes: ['naive', 'batch'], connections: 4, distanceMs: 0 }),
    })
    expect(refused.status).toBe(404)
    expect(await refused.json()).toMatchObject({ code: 'API_NO_RACE' })

    await demo.logIn('ada', `${PASSWORD}r`)
    await demo.page.getByRole('alert').filter({ hasText: 'password' }).waitFor()
    await demo.logIn('ada', PASSWORD)
    await demo.loggedInAs('ada').waitFor()
    await demo.item('lamp').click()
    await expect.poll(() => demo.item('lamp').innerText()).toContain('1 view')
    await demo.logOut.click()
    await demo.logIn('ada', PASSWORD)
    await demo.page
      .getByRole('alert')
      .filter({ hasText: /Too many|Try again in/ })
      .waitFor()
  })
})
