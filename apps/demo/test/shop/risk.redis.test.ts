import { parseMetrics } from '@onetrip/stack/metrics.ts'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import type { FastifyInstance } from 'fastify'
import { expect, test } from 'vitest'
import { shopKeys } from '../../src/shop/keys.ts'
import { bearer, demoForThisTest, login } from '../support.ts'

const server = redisOfThisFile()

const riskOf = async (app: FastifyInstance, token: string, remoteAddress = '127.0.0.1') =>
  (await app.inject({ url: '/me/risk', headers: bearer(token), remoteAddress })).json()

async function metric(app: FastifyInstance, name: string) {
  const metrics = parseMetrics((await app.inject('/metrics')).body)
  const lines = metrics.filter((line) => line.name === `onetrip_risk_${name}`)
  return Object.fromEntries(lines.map(({ labels, value }) => [Object.values(labels)[0], value]))
}

test.each(['naive', 'pipeline', 'batch'] as const)(
  '%s: reports why a login was unusual, and a request from a new network',
  async (strategy) => {
    const cacheEntries = strategy.startsWith('naive') ? 0 : 100
    const app = await demoForThisTest(server.socket, { strategy, cacheEntries })
    const token = await login(app)
    await expect
      .poll(() => riskOf(app, token))
      .toEqual({ logins: 1, lastLoginAt: expect.any(Number), reasons: ['first login'] })
    await login(app)
    await expect.poll(() => riskOf(app, token)).toMatchObject({ logins: 2, reasons: [] })
    expect(await riskOf(app, token, '203.0.113.7')).toMatchObject({ reasons: ['new network'] })
    await expect.poll(() => metric(app, 'logins_total')).toEqual({ low: 1, high: 1, unknown: 0 })
    expect(await metric(app, 'writes_total')).toEqual({ written: 2, dropped: 0 })
    const stored = await server.redis.hgetall(shopKeys.risk('ada'))
    expect(JSON.stringify(stored)).not.toContain('127.0.0.1')
    expect(await server.redis.ttl(shopKeys.risk('ada'))).toBeGreaterThan(7_000_000)
  },
)

test('the reasons of the last login remain; using the session adds none', async () => {
  const app = await demoForThisTest(server.socket)
  const token = await login(app)
  await expect.poll(() => riskOf(app, token)).toMatchObject({ logins: 1 })
  const key = shopKeys.risk('ada')
  const longAgo = Date.now() - 31 * 86_400_000
  const age = { lastLoginAt: longAgo, network: 'another', reasons: '[]' }
  await server.redis.hset(key, age)
  await expect
    .poll(() => riskOf(app, token))
    .toEqual({ logins: 1, lastLoginAt: longAgo, reasons: ['new network'] })
  await login(app)
  await expect
    .poll(() => riskOf(app, token))
    .toMatchObject({ logins: 2, reasons: ['new network', 'long absence'] })
  await server.redis.hdel(key, 'reasons') // as written by the previous version
  await expect.poll(() => riskOf(app, token)).toMatchObject({ logins: 2, reasons: [] })
})

test('features are read once until another process changes them', async () => {
  const app = await demoForThisTest(server.socket)
  const other = await demoForThisTest(server.socket)
  const token = await login(app)
  await expect.poll(async () => (await riskOf(app, token)).logins).toBe(1)
  const hits = async () => (await metric(app, 'reads_total')).hit ?? 0
  const hitsOf99 = async () => {
    const before = await hits()
    for (let index = 0; index < 99; index++) await riskOf(app, token)
    return (await hits()) - before
  }
  await expect.poll(hitsOf99).toBe(99)
  await login(other)
  await expect.poll(async () => (await riskOf(app, token)).logins).toBe(2)
})

test('pending logins are written at shutdown', async () => {
  const app = await demoForThisTest(server.socket, { writeEveryMs: 600_000 })
  await login(app)
  expect(await server.redis.exists(shopKeys.risk('ada'))).toBe(0)
  await app.close()
  expect(await server.redis.hget(shopKeys.risk('ada'), 'logins')).toBe('1')
})

test('a login is recorded as not assessed if its features cannot be read', async () => {
  const app = await demoForThisTest(server.socket, { writeEveryMs: 600_000 })
  const key = shopKeys.risk('ada')
  await server.redis.set(key, 'no hash')
  const token = await login(app)
  await expect.poll(() => metric(app, 'logins_total')).toMatchObject({ unknown: 1 })
  await server.redis.del(key)
  await app.close()
  const next = await demoForThisTest(server.socket)
  expect(await riskOf(next, token)).toMatchObject({ logins: 1, reasons: ['not assessed'] })
})
