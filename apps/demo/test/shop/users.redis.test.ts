import { unixUrl, withPasswordOf } from '@onetrip/stack/address.ts'
import { startRedis } from '@onetrip/stack/redis.ts'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import type { InjectOptions } from 'fastify'
import { expect, onTestFinished, test } from 'vitest'
import { bearer, demoForThisTest, login } from '../support.ts'

/** Starts a Redis with the user `api` of users.acl, and returns its URL. */
async function restrictedRedis(): Promise<string> {
  const directory = await temporaryFolder()
  const [socket, secrets] = [`${directory}/redis.sock`, `${directory}/secrets`]
  const redis = await startRedis({ socket, directory, secrets })
  onTestFinished(async () => void (await redis.stop()))
  return await withPasswordOf('api', unixUrl(socket), secrets)
}

test('the Redis user of the API has the permissions for the shop', async () => {
  const url = await restrictedRedis()
  for (const strategy of ['naive', 'batch'] as const) {
    const app = await demoForThisTest(url.replace('unix://', ''), { strategy })
    const headers = bearer(await login(app, strategy))
    const requests: InjectOptions[] = [
      { method: 'PUT', url: `/items/${strategy}/stock`, payload: { pieces: 100 } },
      { url: `/items/${strategy}/stock` },
      { method: 'POST', url: `/items/${strategy}/purchases` },
      { method: 'POST', url: '/feed', payload: { text: 'hello' } },
      { url: '/feed' },
      { url: '/me/feed' },
      { method: 'POST', url: '/items/book/viewers' },
      { url: '/items/book/viewers' },
    ]
    for (const request of requests) {
      const answer = await app.inject({ ...request, headers })
      expect(answer.statusCode, `${strategy}, ${request.url}: ${answer.body}`).toBe(200)
    }
    // Concurrent, so that they share a batch.
    const view: InjectOptions = { method: 'POST', url: '/items/pen/viewers', headers }
    const views = await Promise.all([app.inject(view), app.inject(view), app.inject(view)])
    expect(views.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200])
    const risk = async () => (await app.inject({ url: '/me/risk', headers })).json()
    await expect.poll(risk).toMatchObject({ logins: 1 })
    const hits = async () =>
      /risk_reads_total\{result="hit"\} (\d+)/.exec((await app.inject('/metrics')).body)?.[1]
    await expect.poll(async () => [await risk(), await hits()].at(-1)).not.toBe('0')
  }
})
