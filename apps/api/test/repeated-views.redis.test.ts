import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { appForThisTest, bearer, login } from './support.ts'

const server = redisOfThisFile()

test('POST /views with an Idempotency-Key counts once', async () => {
  const app = await appForThisTest(server.socket)
  const token = await login(app)
  const logout = { method: 'POST', url: '/logout' } as const
  const view = (key: string) =>
    app.inject({
      method: 'POST',
      url: '/views',
      payload: { item: 'book' },
      headers: { ...bearer(token), 'idempotency-key': key },
    })
  const answers = [await view('one'), await view('one'), await view('two')]
  expect(answers.map((answer) => [answer.statusCode, answer.json().views])).toEqual([
    [200, 1],
    [200, 1],
    [200, 2],
  ])
  expect((await app.inject({ ...logout, headers: bearer(token) })).statusCode).toBe(204)
  const ended = await Promise.all([view('one'), view('three')])
  expect(ended.map((answer) => [answer.statusCode, answer.json().message])).toEqual([
    [
      401,
      'the session does not exist or has ended; a view of an earlier call with this idempotency key may still be counted',
    ],
    [401, 'the session does not exist or has ended'],
  ])
  const tooLong = await view('x'.repeat(256))
  expect([tooLong.statusCode, tooLong.json().message]).toEqual([
    400,
    'headers/idempotency-key must NOT have more than 255 characters',
  ])
})
