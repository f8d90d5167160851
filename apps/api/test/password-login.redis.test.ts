import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { hashPassword, MAX_RUNNING, MAX_WAITING } from '../src/passwords/hash.ts'
import { apiProcessForThisTest, failedStart } from './api-process.ts'
import { clusterForThisTest } from './cluster.ts'
import { bearer } from './support.ts'

const redis = redisOfThisFile()
const PASSWORD = 'correct horse battery staple'

/** Creates a users file with the user ada, and returns its path. */
async function usersFile(): Promise<string> {
  const path = join(await temporaryFolder(), 'users')
  await writeFile(path, `ada:${await hashPassword(PASSWORD)}\n`, { mode: 0o600 })
  return path
}

const settings = async () => ({
  REDIS_URL: `unix://${redis.socket}`,
  NODE_ENV: 'production',
  AUTH: 'password',
  USERS_FILE: await usersFile(),
})

async function login(url: string, credentials: object) {
  const answer = await fetch(`${url}/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(credentials),
  })
  return { status: answer.status, headers: answer.headers, text: await answer.text() }
}

test('in production with several processes, users log in with their passwords', async () => {
  const given = await settings()
  const { primary, url } = await clusterForThisTest({ ...given, LOG_REQUESTS: 'true' })
  const right = await login(url, { user: 'ada', password: PASSWORD })
  expect(right.status).toBe(200)
  expect(right.headers.get('set-cookie')).toMatch(/^__Host-onetrip=.*; Secure/)
  const { token } = JSON.parse(right.text) as { token: string }
  const me = await fetch(`${url}/me`, { headers: bearer(token) })
  expect(await me.json()).toMatchObject({ user: 'ada' })

  // The same response for a wrong password and for an unknown user.
  const wrong = await login(url, { user: 'ada', password: `${PASSWORD}r` })
  const unknown = await login(url, { user: 'eve', password: PASSWORD })
  expect(wrong.status).toBe(401)
  expect({ status: unknown.status, text: unknown.text }).toEqual({
    status: wrong.status,
    text: wrong.text,
  })
  for (const malformed of [
    { user: 'ada' },
    { user: 'ada', password: '' },
    { user: 'ada', password: 5 },
    { user: 'ada', password: 'x'.repeat(257) },
    { user: 'ada', password: PASSWORD, admin: true },
  ]) {
    const answer = await login(url, malformed)
    expect(answer.status).toBe(400)
    expect(answer.text).not.toContain(PASSWORD)
  }
  const lines = primary.lastLines.join('\n')
  expect(lines).toContain('"status":401')
  for (const hidden of [PASSWORD, '$argon2id', token]) expect(lines).not.toContain(hidden)

  // All processes accept a new user without a restart.
  const second = `bob:${await hashPassword('a second password')}\n`
  await writeFile(given.USERS_FILE, second, { flag: 'a' })
  for (let attempt = 0; attempt < 4; attempt += 1) {
    expect((await login(url, { user: 'bob', password: 'a second password' })).status).toBe(200)
  }
}, 90_000)

test('a burst of logins: some wait, the others get 503, and other requests are answered', async () => {
  const { url } = await apiProcessForThisTest({ ...(await settings()), LOGIN_LIMIT_PER_USER: '0' })
  const { text } = await login(url, { user: 'ada', password: PASSWORD })
  const { token } = JSON.parse(text) as { token: string }
  const burst = Array.from({ length: 200 }, () => login(url, { user: 'ada', password: PASSWORD }))
  const view = await fetch(`${url}/me/views`, { headers: bearer(token) })
  expect(view.status).toBe(200)
  const answers = await Promise.all(burst)
  const served = answers.filter(({ status }) => status === 200)
  const refused = answers.filter(({ status }) => status === 503)
  expect(served.length + refused.length).toBe(200)
  expect(served.length).toBeGreaterThanOrEqual(MAX_RUNNING + MAX_WAITING)
  for (const { headers, text: body } of refused) {
    expect(headers.get('retry-after')).toBe('1')
    expect(JSON.parse(body)).toMatchObject({ code: 'API_OVERLOADED', retrySafe: true })
  }
  expect((await login(url, { user: 'ada', password: PASSWORD })).status).toBe(200)
})

test('the rate limit applies before a password is hashed', async () => {
  const { url } = await apiProcessForThisTest({
    ...(await settings()),
    LOGIN_LIMIT_PER_USER: '2',
    LOGIN_LIMIT_WINDOW_SECONDS: '86400',
  })
  const statuses = []
  // The third is rejected although the password is correct.
  for (const password of ['wrong one', 'wrong two', PASSWORD]) {
    statuses.push((await login(url, { user: 'ada', password })).status)
  }
  expect(statuses).toEqual([401, 401, 429])
})

test.each([
  [{ USERS_FILE: '/nowhere/users' }, 'USERS_FILE: cannot be read: ENOENT'],
  [{ USERS_FILE: '/nowhere/users', WORKERS: '2' }, 'USERS_FILE: cannot be read'],
])('startup fails with %j: %s', async (more, words) => {
  const { code, stderr } = await failedStart({ ...(await settings()), ...more })
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(words) })
})
