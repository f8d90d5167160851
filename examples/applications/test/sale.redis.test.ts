import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { beforeAll, describe, expect, test } from 'vitest'
import { onePipeline } from '../compare.ts'
import { decrSale, hincrbySale, type Sale } from '../sale.ts'

const server = redisOfThisFile()

let connections: Redis[]
beforeAll(() => {
  connections = Array.from({ length: 8 }, () => new Redis(server.socket))
  return () => connections.map((connection) => connection.disconnect())
})

const key = 'sale'
const sales = [decrSale(key), hincrbySale(key)]

/** All of these buyers buy at the same time, on several connections. Returns their replies. */
async function buyAtOnce(sale: Sale, buyers: readonly string[]): Promise<number[]> {
  const bought = buyers.map((buyer, index) => {
    const connection = connections[index % connections.length] as Redis
    return onePipeline(connection, [sale.buy(buyer)])
  })
  return (await Promise.all(bought)).map(([left]) => Number(left))
}

const namesOf = (count: number) => Array.from({ length: count }, (_, index) => `buyer ${index}`)
const leftOf = async (sale: Sale) => Number((await onePipeline(server.redis, [sale.left()]))[0])

describe.each(sales)('$name', (sale) => {
  test('never sells more than there is, for any number of concurrent buyers', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat({ max: 100 }), fc.nat({ max: 200 }), async (pieces, count) => {
        await onePipeline(server.redis, sale.open(pieces))
        const replies = await buyAtOnce(sale, namesOf(count))
        const sold = replies.filter((left) => left >= 0)
        expect(sold.length).toBe(Math.min(pieces, count))
        expect(new Set(sold).size).toBe(sold.length) // each piece once
        expect(await leftOf(sale)).toBe(pieces - sold.length)
      }),
      { numRuns: 60 },
    )
  })

  test('sells nothing that was never put on sale', async () => {
    await server.redis.flushall()
    expect(await buyAtOnce(sale, ['ada', 'bob'])).toEqual([-1, -1])
  })
})

test('HINCRBY: a buyer who asks again gets no second piece, also when sold out', async () => {
  const sale = hincrbySale(key)
  await onePipeline(server.redis, sale.open(2))
  expect(await buyAtOnce(sale, ['ada', 'ada', 'ada'])).toEqual([1, 1, 1])
  expect(await buyAtOnce(sale, ['bob', 'eve', 'ada'])).toEqual(
    expect.arrayContaining([expect.any(Number), -1]),
  )
  expect(await buyAtOnce(sale, ['ada', 'mary'])).toEqual([0, -1])
  expect(await server.redis.hlen(key)).toBe(3) // pieces left, and two buyers
})

test('DECR: a request that is repeated takes another piece', async () => {
  const sale = decrSale(key)
  await onePipeline(server.redis, sale.open(2))
  expect((await buyAtOnce(sale, ['ada', 'ada', 'ada'])).toSorted()).toEqual([-1, 0, 1])
})
