import { redisOfThisFile } from '@onetrip/stack/testing/redis.ts'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { partitionedKeys } from '../src/cluster/index.ts'
import { createSessionStore } from '../src/core/index.ts'
import { Model } from './model.ts'

const server = redisOfThisFile()
const tokens = { secrets: ['a-secret-for-tests-a-secret-for-tests'] }

test('popular items of all partitions match a plain model', async () => {
  const item = fc.oneof(
    fc.integer({ min: 0, max: 40 }).map((number) => `item ${number}`),
    fc.constantFrom('{0}', '}{', '__proto__', '😀', '\ufffc'),
  )
  const input = {
    partitions: fc.constantFrom(1, 2, 3, 64),
    // An item and its number of views; many items have the same count.
    views: fc.array(fc.tuple(item, fc.integer({ min: 1, max: 4 })), {
      minLength: 20,
      maxLength: 60,
    }),
    limit: fc.constantFrom(1, 2, 5, 10, 50),
  }
  await fc.assert(
    fc.asyncProperty(fc.record(input), async ({ partitions, views, limit }) => {
      await server.redis.flushall()
      const store = createSessionStore({
        url: `unix://${server.socket}`,
        keys: partitionedKeys(partitions),
        tokens,
        janitor: 'elsewhere',
        deadlineMs: 20_000,
      })
      try {
        await store.ready()
        const model = new Model()
        const { token } = await store.login('ada')
        model.login.set(token, 'ada')
        const all = views.flatMap(([name, times]) => new Array<string>(times).fill(name))
        await Promise.all(all.map((name) => store.recordView(token, name)))
        for (const name of all) model.recordView(token, name, 1)

        const popular = await store.popularItems(limit)
        const counts = [...model.views.values()].sort((a, b) => b - a)
        expect(popular.map(({ views }) => views)).toEqual(counts.slice(0, limit))
        for (const { item, views } of popular) expect(views).toBe(model.views.get(item))
        expect(new Set(popular.map(({ item }) => item)).size).toBe(popular.length)
      } finally {
        await store.close()
      }
    }),
    { numRuns: 100 },
  )
})
