import { SessionStore } from '@onetrip/session-store'
import { dumpOf, type TestRedis, testRedis } from '@onetrip/stack/testing/redis.ts'
import type { FastifyInstance } from 'fastify'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { appOn, bearer, listen, login, secret, view } from '../support.ts'
import { hostileRequests, type Tokens } from './requests.ts'
import { bytesOf, exchange } from './wire.ts'

const noTokens = { genuine: '', other: '', gone: '', expired: '', foreign: '', early: '' }
const names = hostileRequests(noTokens).map(([what]) => what)

describe('gets the expected status, and changes nothing in Redis:', () => {
  let server: TestRedis
  let redis: Redis
  let app: FastifyInstance
  let port: number
  let tokens: Tokens

  beforeAll(async () => {
    server = await testRedis()
    redis = new Redis(server.socket)
    app = await appOn(server.socket)
    await app.store.ready()
    port = await listen(app)
    tokens = {
      genuine: await login(app, 'ada'),
      other: await login(app, 'bob'),
      gone: await login(app, 'ada'),
      foreign: await issuedBy('another-secret-of-somebody-else-32', 0),
      expired: await issuedBy(secret, -31 * 24 * 3600),
      early: await issuedBy(secret, 3600),
    }
    await app.inject({ method: 'POST', url: '/logout', headers: bearer(tokens.gone) })
    expect((await view(app, tokens.genuine)).statusCode).toBe(200)
  })

  afterAll(async () => {
    await app.close()
    redis.disconnect()
    await server.stop()
  })

  async function issuedBy(signingSecret: string, secondsFromNow: number): Promise<string> {
    const store = new SessionStore({
      redis: `unix://${server.socket}`,
      tokens: { secrets: [signingSecret], clock: () => Date.now() + secondsFromNow * 1000 },
    })
    try {
      await store.ready()
      return (await store.login('ada')).token
    } finally {
      await store.close()
    }
  }

  test.each(names.map((what, index) => [what, index] as const))('%s', async (_, index) => {
    const [, bytes = Buffer.alloc(0), status] = hostileRequests(tokens)[index] ?? []
    const before = await dumpOf(redis)
    const { statuses, text } = await exchange(port, bytes)
    expect(statuses).toEqual([status])
    expect(await dumpOf(redis)).toEqual(before)
    for (const token of Object.values(tokens)) expect(text).not.toContain(token)
  })

  test('afterwards the API answers as before', async () => {
    const me = bytesOf({ path: '/me/views', headers: [`authorization: Bearer ${tokens.genuine}`] })
    const { statuses, text } = await exchange(port, me)
    expect(statuses).toEqual([200])
    expect(text).toContain('"item":"book"')
  })
})
