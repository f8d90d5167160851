import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import { expect, test } from 'vitest'
import { appForThisTest, login, view } from './support.ts'

const server = redisOfThisFile()

const MAX_IN_FLIGHT = 1_000 // the store's default

test('a stopped Redis: requests above the limit in flight are rejected, the others are answered later', async () => {
  const app = await appForThisTest(server.socket, { deadlineMs: 60_000 })
  const token = await login(app)
  const resume = server.pause()
  const accepted = Array.from({ length: MAX_IN_FLIGHT }, () => view(app, token))
  await expect.poll(() => app.store.info?.inFlight).toBe(MAX_IN_FLIGHT)
  for (const refused of await Promise.all(Array.from({ length: 50 }, () => view(app, token)))) {
    expect(refused.statusCode).toBe(503)
    expect(refused.headers['retry-after']).toBe('1')
    expect(refused.json()).toMatchObject({
      code: 'ONETRIP_OVERLOADED',
      mayHaveWritten: false,
      retrySafe: true,
    })
  }
  expect((await app.inject('/healthz')).statusCode).toBe(200)
  resume()
  const answers = await Promise.all(accepted)
  expect(new Set(answers.map(({ statusCode }) => statusCode))).toEqual(new Set([200]))
  expect((await view(app, token)).json()).toMatchObject({ views: MAX_IN_FLIGHT + 1 })
})

test.each([500, 0])('a blocked process, with a maximum delay of %i ms', async (maxDelayMs) => {
  const app = await appForThisTest(server.socket, { maxEventLoopDelayMs: maxDelayMs })
  const token = await login(app)
  const resume = server.pause()
  const begun = view(app, token)
  await expect.poll(() => app.store.info?.inFlight).toBe(1)
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000)
  const waiting = [view(app, token), app.inject('/healthz'), app.inject('/metrics')] as const
  resume()
  const [late, ...exempt] = await Promise.all(waiting)
  for (const { statusCode } of [await begun, ...exempt]) expect(statusCode).toBe(200)
  if (maxDelayMs === 0) return expect(late.statusCode).toBe(200)
  expect(late.headers['retry-after']).toBe('1')
  expect(late.json()).toMatchObject({
    statusCode: 503,
    code: 'API_OVERLOADED',
    mayHaveWritten: false,
    retrySafe: true,
  })
  await expect.poll(async () => (await view(app, token)).json().views).toBe(2)
})
