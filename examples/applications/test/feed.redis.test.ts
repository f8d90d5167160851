import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { onePipeline } from '../compare.ts'
import { lpushFeed, nextPage, rpushFeed } from '../feed.ts'

const server = redisOfThisFile()
const send = (commands: Parameters<typeof onePipeline>[1]) => onePipeline(server.redis, commands)

describe.each([rpushFeed, lpushFeed])('$name', (feed) => {
  test('while others post, pages repeat no entry and skip none', async () => {
    const posts = fc.array(fc.nat({ max: 50 }), { maxLength: 6 })
    await fc.assert(
      fc.asyncProperty(fc.nat({ max: 70 }), posts, async (before, between) => {
        await server.redis.flushall()
        let posted = 0
        const post = (count: number) =>
          send(Array.from({ length: count }, () => feed.post('ada', `post ${posted++}`)).flat())
        await post(before)
        const read: string[] = []
        for (const count of between) {
          read.push(...(await nextPage(send, feed, 'ada', read)))
          await post(count)
        }
        for (let page = ['first']; page.length > 0; read.push(...page)) {
          page = await nextPage(send, feed, 'ada', read)
        }
        const numbers = read.map((entry) => Number(entry.slice(5)))
        // From the newest when the reader began (or when there first was one) down to the oldest.
        const newest = numbers[0] ?? -1
        expect(numbers).toEqual(Array.from({ length: newest + 1 }, (_, index) => newest - index))
        if (before > 0) expect(newest).toBe(before - 1)
      }),
      { numRuns: 60 },
    )
  })
})

test('LPUSH and LTRIM keep the newest 1,000 entries; RPUSH keeps all', async () => {
  for (const [feed, kept] of [
    [lpushFeed, 1_000],
    [rpushFeed, 1_010],
  ] as const) {
    await server.redis.flushall()
    await send(Array.from({ length: 1_010 }, (_, number) => feed.post('ada', `${number}`)).flat())
    expect(await server.redis.llen('ada')).toBe(kept)
    expect((await nextPage(send, feed, 'ada', [])).slice(0, 2)).toEqual(['1009', '1008'])
  }
})
