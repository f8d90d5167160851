import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { documented, startExample, textArguments } from './example.ts'

const server = redisOfThisFile()

test.each([
  ['Fastify', 'fastifySessions,'],
  ['Express', '= express()'],
  ['node:http', 'resultOf('],
])('with %s: password check, cookie, views, logout', async (name, word) => {
  const args = textArguments(documented(word))
  const { cookies, send, stop } = await startExample(name, server.socket, args)
  const crossSite = { origin: 'https://evil.example' }
  const credentials = { user: 'ada', password: 'lovelace' }
  const notLoggedIn = { status: 401, body: { code: 'ONETRIP_LOGIN_REQUIRED' } }
  expect(await send('GET', '/me')).toMatchObject(notLoggedIn)
  expect(await send('POST', '/login', crossSite, credentials)).toMatchObject({ status: 403 })
  if (name !== 'node:http') {
    for (const wrong of [{ user: 'eve' }, { password: 'wrong' }]) {
      const answer = await send('POST', '/login', {}, { ...credentials, ...wrong })
      expect(answer.status).toBe(401)
    }
  }
  expect(cookies.size).toBe(0)

  const loggedIn = await send('POST', '/login', {}, credentials)
  expect(loggedIn).toMatchObject({ status: 200, body: { user: 'ada' } })
  expect([...cookies.keys()]).toEqual(['__Host-onetrip'])
  expect((await send('POST', '/views/book')).body).toEqual({ user: 'ada', views: 1 })
  expect(await send('POST', '/views/book', crossSite)).toMatchObject({ status: 403 })
  expect((await send('GET', '/me')).body).toMatchObject({ user: 'ada' })
  const token = cookies.get('__Host-onetrip')
  expect((await send('POST', '/logout')).body).toEqual({ ended: true })
  expect(cookies.size).toBe(0)
  const ended = await send('GET', '/me', { cookie: `__Host-onetrip=${token}` })
  expect(ended).toMatchObject({ status: 401, body: { code: 'ONETRIP_UNKNOWN_SESSION' } })
  await stop()
})
