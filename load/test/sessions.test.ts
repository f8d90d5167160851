import { serve } from '@onetrip/stack/testing/serve.ts'
import { expect, test } from 'vitest'
import { logIn } from '../src/drivers/http/sessions.ts'

const { signal } = new AbortController()

/** An API that accepts `room` logins and then answers with the status `refusal`. */
async function api(room = Number.POSITIVE_INFINITY, refusal = 503) {
  const users: string[] = []
  const inside = new Set<string>()
  const url = await serve(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    if (request.url === '/logout') {
      inside.delete(request.headers.authorization ?? '')
      response.statusCode = 204
      return void response.end()
    }
    if (inside.size >= room) {
      response.statusCode = refusal
      return void response.end('full')
    }
    const { user } = JSON.parse(body)
    users.push(user)
    inside.add(`Bearer token-${user}`)
    response.end(JSON.stringify({ token: `token-${user}` }))
  })
  return { url, users, inside }
}

test('logs in different users, and logs out all of them', async () => {
  const { url, users, inside } = await api()
  const sessions = await logIn(url, 20, signal)
  expect(sessions.tokens).toHaveLength(20)
  expect(new Set(users).size).toBe(20)
  expect(inside.size).toBe(20)
  await sessions.end()
  expect(inside.size).toBe(0)
})

test.each([
  [503, /Logging in at .* failed.*503 full/],
  [429, /\(429\).*LOGIN_LIMIT_PER_ADDRESS=0/],
])('users who are logged in before a refusal (%d) are logged out', async (status, message) => {
  const { url, users, inside } = await api(12, status)
  await expect(logIn(url, 20, signal)).rejects.toThrow(message)
  expect(users).toHaveLength(12)
  expect(inside.size).toBe(0)
})
