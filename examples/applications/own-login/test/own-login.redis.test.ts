import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { apiProcessForThisTest } from '../../../../apps/api/test/api-process.ts'
import { ask } from '../../../../apps/api/test/client.ts'

const redis = redisOfThisFile()
const fileOf = (name: string) => join(import.meta.dirname, '..', name)
const PASSWORD = 'correct horse battery staple'

/** Runs `add-user.ts` with this password as its input. */
async function addUser(path: string, password: string) {
  const child = execFile(process.execPath, [fileOf('add-user.ts'), path, 'Ada@example.com', 'Ada'])
  child.stdin?.end(`${password}\n`)
  const [code] = await once(child, 'exit')
  return code
}

/** Creates a database with the user ada, and returns its path. */
async function usersDatabase(): Promise<string> {
  const path = join(await temporaryFolder(), 'users.db')
  expect(await addUser(path, 'the first password')).toBe(0)
  expect(statSync(path).mode & 0o077).toBe(0) // only the owner may read it
  expect(await addUser(path, 'short')).toBe(1)
  expect(await addUser(path, PASSWORD)).toBe(0) // changes the password
  return path
}

// Repeated: when a window of five minutes ends between the attempts, the limit counts from zero.
test('in production, it serves its login and routes, and limits the attempts of a user', {
  retry: 1,
}, async () => {
  const { api, url } = await apiProcessForThisTest(
    {
      REDIS_URL: `unix://${redis.socket}`,
      NODE_ENV: 'production',
      LOGIN_LIMIT_PER_USER: '4',
      USERS_DATABASE: await usersDatabase(),
    },
    fileOf('own-login.ts'),
  )
  const login = (body: object) => ask(`${url}/login`, { body })
  const email = 'Ada@Example.com'
  const loggedIn = await login({ email, password: PASSWORD })
  expect(loggedIn).toMatchObject({ status: 200, user: expect.stringMatching(/^[0-9a-f-]{36}$/) })
  const { headers } = await fetch(`${url}/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email, password: PASSWORD }),
  })
  expect(headers.get('set-cookie')).toMatch(/^__Host-onetrip=.*; Secure/)
  for (const wrong of [
    { email, password: 'wrong' },
    { email: 'eve@example.com', password: PASSWORD },
  ]) {
    expect(await login(wrong)).toMatchObject({ code: 'API_WRONG_CREDENTIALS' })
  }
  expect(await login({ user: 'ada' })).toMatchObject({ status: 400 })

  const profile = { status: 200, name: 'Ada', email: 'ada@example.com' }
  expect(await ask(`${url}/me/profile`, { token: String(loggedIn.token) })).toEqual(profile)
  expect(await ask(`${url}/me/profile`)).toMatchObject({ status: 401 })
  expect((await fetch(`${url}/welcome`)).status).toBe(200)

  // One limit for all spellings of a user, also for the right password.
  const attempts = [email, email.toLowerCase()].map((email) => ({ email, password: PASSWORD }))
  expect((await login(attempts[0] ?? {})).status).toBe(200)
  expect(await login(attempts[1] ?? {})).toMatchObject({ status: 429 })

  api.signal('SIGTERM')
  expect(await api.exited).toEqual({ code: 0, signal: null })
  expect(api.lastLines.join('\n')).not.toContain(PASSWORD)
})

test('the README of the API contains the example, which has less than 40 lines', () => {
  const readme = readFileSync(new URL('../../../../apps/api/README.md', import.meta.url), 'utf8')
  const text = readFileSync(fileOf('own-login.ts'), 'utf8')
  expect(readme).toContain(`\`\`\`ts\n${text}\`\`\``)
  expect(text.split('\n').length).toBeLessThan(40)
})
