import { parseMetrics } from '@onetrip/stack/metrics.ts'
import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import type { FastifyInstance } from 'fastify'
import { expect, test } from 'vitest'
import { shopKeys } from '../../src/shop/keys.ts'
import { filter, seeItem } from '../../src/shop/viewers.ts'
import { bearer, demoForThisTest, login } from '../support.ts'

const server = redisOfThisFile()

const see = async (app: FastifyInstance, token: string, item = 'book') =>
  (
    await app.inject({ method: 'POST', url: `/items/${item}/viewers`, headers: bearer(token) })
  ).json()

test.each(['naive', 'pipeline', 'batch'] as const)(
  '%s: each user counts once per item',
  async (strategy) => {
    const app = await demoForThisTest(server.socket, { strategy })
    const [ada, bob] = [await login(app), await login(app, 'bob')]
    expect(await see(app, ada)).toEqual({ item: 'book', seenBefore: false, viewers: 1 })
    expect(await see(app, await login(app))).toEqual({ item: 'book', seenBefore: true, viewers: 1 })
    expect(await see(app, bob)).toEqual({ item: 'book', seenBefore: false, viewers: 2 })
    expect(await see(app, bob, 'pen')).toEqual({ item: 'pen', seenBefore: false, viewers: 1 })
    const count = async (item: string) =>
      (await app.inject({ url: `/items/${item}/viewers`, headers: bearer(ada) })).json()
    expect(await count('book')).toEqual({ item: 'book', viewers: 2 })
    expect(await count('cup')).toEqual({ item: 'cup', viewers: 0 })
    expect(await server.redis.ttl(shopKeys.viewers('book'))).toBeGreaterThan(600_000)
    const metrics = parseMetrics((await app.inject('/metrics')).body)
    const views = metrics.filter(({ name }) => name === 'onetrip_unique_views_total')
    expect(views.map(({ labels, value }) => [labels.result, value])).toEqual([
      ['new', 3],
      ['seen', 1],
    ])
  },
)

test('10,000 viewers: the estimate, compared with the exact count and a HyperLogLog', async () => {
  const { store } = await demoForThisTest(server.socket)
  const users = Array.from({ length: 10_000 }, (_, index) => `user-${index}`)
  const seeAll = async () => {
    const seen: Awaited<ReturnType<typeof seeOne>>[] = []
    for (let from = 0; from < users.length; from += 500) {
      seen.push(...(await Promise.all(users.slice(from, from + 500).map(seeOne))))
    }
    return seen
  }
  const seeOne = (user: string) => store.run(seeItem('book', user))
  const first = await seeAll()
  const wrong = first.filter(({ seenBefore }) => seenBefore).length
  expect(wrong).toBeLessThan(100) // 1 % at the end, fewer before
  await server.redis.pfadd('exact', ...users)
  const counts = { bloom: first.at(-1)?.viewers ?? 0, log: await server.redis.pfcount('exact') }
  for (const count of Object.values(counts)) expect(Math.abs(count / 10_000 - 1)).toBeLessThan(0.03)
  // Known viewers are never new, and change nothing.
  const again = await seeAll()
  expect(again.every(({ seenBefore }) => seenBefore)).toBe(true)
  expect(again.at(-1)?.viewers).toBe(counts.bloom)
  expect(await server.redis.strlen(shopKeys.viewers('book'))).toBeLessThanOrEqual(
    Math.ceil(filter.bits / 8),
  )
})
