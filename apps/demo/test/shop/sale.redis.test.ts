import { redisForThisTest, redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import type { FastifyInstance } from 'fastify'
import { Redis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { shopKeys } from '../../src/shop/keys.ts'
import { buy, LEFT, setStock } from '../../src/shop/sale.ts'
import { bearer, demoForThisTest, login } from '../support.ts'

const server = redisOfThisFile()

const setPieces = (app: FastifyInstance, token: string, pieces: number, item = 'book') =>
  app.inject({
    method: 'PUT',
    url: `/items/${item}/stock`,
    headers: bearer(token),
    payload: { pieces },
  })

const purchase = (app: FastifyInstance, token: string, item = 'book') =>
  app.inject({ method: 'POST', url: `/items/${item}/purchases`, headers: bearer(token) })

test.each(['naive', 'pipeline', 'batch'] as const)(
  '%s: one piece per buyer until sold out',
  async (strategy) => {
    const app = await demoForThisTest(server.socket, { strategy })
    const [ada, bob, eve] = [await login(app), await login(app, 'bob'), await login(app, 'eve')]
    expect((await purchase(app, ada)).json()).toMatchObject({ code: 'API_NOT_FOUND' })
    expect((await setPieces(app, ada, 2)).json()).toEqual({ item: 'book', left: 2, sold: 0 })
    expect(await server.redis.ttl(shopKeys.sale('book'))).toBeGreaterThan(86_000)
    const first = (await purchase(app, ada)).json()
    expect(first).toEqual({ item: 'book', boughtAt: expect.any(Number), left: 1 })
    expect((await purchase(app, await login(app))).json()).toEqual(first) // another session of the same user
    expect((await purchase(app, bob)).json()).toMatchObject({ left: 0 })
    expect((await purchase(app, eve)).json()).toMatchObject({ code: 'DEMO_SOLD_OUT' })
    const stock = await app.inject({ url: '/items/book/stock', headers: bearer(eve) })
    expect(stock.json()).toEqual({ item: 'book', left: 0, sold: 2 })
    expect((await setPieces(app, ada, 3)).json()).toMatchObject({ left: 1, sold: 2 })
    expect((await purchase(app, eve)).json()).toMatchObject({ left: 0 })
    const { body } = await app.inject('/metrics')
    for (const line of ['bought"} 3', 'repeated"} 1', 'sold_out"} 1']) {
      expect(body).toContain(`onetrip_sale_purchases_total{result="${line}`)
    }
  },
)

test('purchases need the session of a user, not of a guest', async () => {
  const app = await demoForThisTest(server.socket)
  expect((await purchase(app, 'x')).statusCode).toBe(401)
  const { token } = await app.store.loginGuest()
  expect((await purchase(app, token)).json()).toMatchObject({ code: 'ONETRIP_LOGIN_REQUIRED' })
})

/** Checks that pieces = left + buyers. */
async function accountOf(redis: Redis, item = 'book') {
  const { [LEFT]: left, ...buyers } = await redis.hgetall(shopKeys.sale(item))
  return { left: Number(left), buyers: Object.keys(buyers) }
}

test('1,000 buyers, 100 pieces, and Redis killed during the sale: the counts are exact', async () => {
  const redis = await redisForThisTest({ config: { appendfsync: 'always' } })
  const app = await demoForThisTest(redis.socket)
  const buyers = await Promise.all(
    Array.from({ length: 1_000 }, async (_, index) => {
      const user = `buyer-${index}`
      return { user, token: await login(app, user) }
    }),
  )
  await setPieces(app, buyers[0]?.token ?? '', 100)
  const bought = new Set<string>()
  let recovered: Promise<void> | undefined
  let [failures, soldOut] = [0, 0]

  async function buyUntilAnswered({ user, token }: (typeof buyers)[number]): Promise<void> {
    for (;;) {
      const answer = await purchase(app, token)
      if (answer.statusCode === 409) {
        soldOut++
        return
      }
      if (answer.statusCode === 200) {
        bought.add(user)
        if (bought.size === 40) {
          redis.program.signal('SIGKILL')
          recovered = redis.restart().then(() => app.store.ready(30_000))
        }
        return
      }
      expect(answer.json()).toMatchObject({ statusCode: 503, retrySafe: true })
      failures++
      await recovered
    }
  }
  const queue = buyers.values()
  const shopper = async () => {
    for (const buyer of queue) await buyUntilAnswered(buyer)
  }
  await Promise.all(Array.from({ length: 32 }, shopper))

  expect(failures).toBeGreaterThan(0)
  expect({ bought: bought.size, soldOut }).toEqual({ bought: 100, soldOut: 900 })
  const client = clientForThisTest(redis.socket)
  const account = await accountOf(client)
  expect(account.left).toBe(0)
  expect(new Set(account.buyers)).toEqual(bought)
})

test('a purchase whose reply was lost can be retried', async () => {
  const redis = await redisForThisTest()
  // Without the connection of the risk cache, and without its writes, which would be paused, too.
  const app = await demoForThisTest(redis.socket, { cacheEntries: 0, writeEveryMs: 600_000 })
  const token = await login(app)
  await setPieces(app, token, 2)
  const client = clientForThisTest(redis.socket)
  await client.call('CLIENT', 'PAUSE', '60000', 'WRITE')
  const lost = purchase(app, token)
  // The session check only reads. Then Redis executes the purchase, and the connection is lost.
  await expect.poll(() => client.client('LIST')).toMatch(/name=onetrip .* flags=b.* cmd=eval/)
  const connections = String(await client.client('LIST')).split('\n')
  const id = /^id=(\d+)/.exec(connections.find((one) => one.includes('name=onetrip')) ?? '')?.[1]
  await client.client('KILL', 'ID', id ?? '')
  expect((await lost).json()).toMatchObject({
    code: 'ONETRIP_OUTCOME_UNKNOWN',
    mayHaveWritten: true,
    retrySafe: true,
  })
  await client.call('CLIENT', 'UNPAUSE')
  await app.store.ready()
  expect((await purchase(app, token)).json()).toMatchObject({ left: 1 })
})

function clientForThisTest(socket: string): Redis {
  const client = new Redis(socket)
  onTestFinished(() => client.disconnect())
  return client
}

test('setting the stock at any moment of the sale sells no more', async () => {
  const { store } = await demoForThisTest(server.socket)
  const sell = (item: string, user: string) => store.run(buy(item, user, Date.now()))
  for (let roundTrips = 0; roundTrips < 15; roundTrips++) {
    const item = `book-${roundTrips}`
    await store.run(setStock(item, 10))
    const shopper = async (_: unknown, number: number) => {
      for (let index = 0; index < 4; index++) await sell(item, `buyer-${number}-${index}`)
    }
    const shoppers = Promise.all(Array.from({ length: 7 }, shopper))
    for (let made = 0; made < roundTrips; made++) await store.popularItems()
    await store.run(setStock(item, 10))
    await shoppers
    const { left, buyers } = await accountOf(server.redis, item)
    expect({ left, buyers: buyers.length }).toEqual({ left: 0, buyers: 10 })
  }
})
