import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { halveCounts } from '../src/retention/rescale.ts'
import { recordView, undoView } from '../src/views/record.ts'
import { readyStore } from './fixture.ts'
import { keysInParts } from './keys-in-parts.ts'
import { layouts, logIn, retentionServer } from './retention-fixture.ts'

const server = retentionServer()
const daily = { rescaleEverySeconds: 86_400, sweepEverySeconds: Number.POSITIVE_INFINITY }

const asObject = (items: { item: string; views: number }[]) =>
  Object.fromEntries(items.map(({ item, views }) => [item, views]))

describe.each(layouts)('%s', (_, keys) => {
  test('halves every count once, rounding down, and drops items that reach 0', async () => {
    const { clock, store } = await server.start({ keys })
    const [token = ''] = await logIn(store, clock, 1) // a view of item 0
    for (const count of [2, 3, 4, 5, 300]) {
      for (let view = 0; view < count; view++) await store.recordView(token, `${count} times`)
    }
    const janitor = store.janitor({ ...daily, batchSize: 2 })
    expect(await janitor.runOnce()).toMatchObject({ itemsHalved: 0 }) // the first period starts
    clock.pass(86_399)
    expect(await janitor.runOnce()).toMatchObject({ itemsHalved: 0 })
    clock.pass(1)
    expect(await janitor.runOnce()).toMatchObject({ itemsHalved: 5, itemsDropped: 1 })
    expect(asObject(await store.popularItems(100))).toEqual({
      '2 times': 1,
      '3 times': 1,
      '4 times': 2,
      '5 times': 2,
      '300 times': 150,
    })
    // Another process, in the same period.
    const other = await server.storeForThisTest(clock, { keys })
    expect(await other.janitor(daily).runOnce()).toMatchObject({ worked: true, itemsHalved: 0 })
  })

  test('matches a plain model, even if a view is undone after its count was halved', async () => {
    const item = fc.constantFrom('book', 'pen', '__proto__')
    const action = fc.oneof(
      fc.record({ kind: fc.constantFrom('view' as const, 'undo' as const), item }),
      fc.record({
        kind: fc.constant('halve' as const),
        items: fc.uniqueArray(item, { minLength: 1 }),
      }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 40 }), async (actions) => {
        await server.redis.flushall()
        const counts = new Map<string, number>()
        /** Views of an ended session that are still to be undone. */
        const pending: string[] = []
        for (const action of actions) {
          if (action.kind === 'halve') {
            for (const [key, items] of Map.groupBy(action.items, (item) => keys.popular(item))) {
              await server.run(halveCounts(key, items))
            }
            for (const item of action.items) {
              counts.set(item, Math.floor((counts.get(item) ?? 0) / 2))
            }
          } else if (action.kind === 'view') {
            await server.run(recordView(keys, { id: 'gone', item: action.item }, 1))
            pending.push(action.item)
            counts.set(action.item, (counts.get(action.item) ?? 0) + 1)
          } else {
            const item = pending.shift()
            if (item === undefined) continue
            await server.run(undoView(keys, { id: 'gone', item }))
            counts.set(item, Math.max(0, (counts.get(item) ?? 0) - 1))
          }
        }
        const stored = await Promise.all(
          [...counts.keys()].map((item) => server.redis.zscore(keys.popular(item), item)),
        )
        expect(stored).toEqual(
          [...counts.values()].map((views) => (views === 0 ? null : String(-views))),
        )
      }),
      { numRuns: 100 },
    )
  })
})

test('keeps the most viewed items', async () => {
  const { clock, store } = await server.start()
  const [token = ''] = await logIn(store, clock, 1)
  for (let item = 2; item <= 12; item++) {
    for (let view = 0; view < 2 * item; view++) await store.recordView(token, `item ${item}`)
  }
  const janitor = store.janitor({ ...daily, keptItems: 3, batchSize: 2 })
  await janitor.runOnce()
  clock.pass(86_400)
  expect(await janitor.runOnce()).toMatchObject({ itemsHalved: 3, itemsDropped: 9 })
  expect(asObject(await store.popularItems(100))).toEqual({
    'item 12': 12,
    'item 11': 11,
    'item 10': 10,
  })
})

test('popular items of all parts match a plain model', async () => {
  const item = fc.oneof(
    fc.integer({ min: 0, max: 40 }).map((number) => `item ${number}`),
    fc.constantFrom('{0}', '}{', '__proto__', '😀', '\ufffc'),
  )
  const input = {
    parts: fc.constantFrom(1, 2, 3, 64),
    // An item and its number of views; many items have the same count.
    views: fc.array(fc.tuple(item, fc.integer({ min: 1, max: 4 })), {
      minLength: 20,
      maxLength: 60,
    }),
    limit: fc.constantFrom(1, 2, 5, 10, 50),
  }
  await fc.assert(
    fc.asyncProperty(fc.record(input), async ({ parts, views, limit }) => {
      await server.redis.flushall()
      const url = `unix://${server.socket}`
      const store = await readyStore({ redis: url, keys: keysInParts(parts) })
      const { token } = await store.login('ada')
      const all = views.flatMap(([name, times]) => new Array<string>(times).fill(name))
      await Promise.all(all.map((name) => store.recordView(token, name)))

      const popular = await store.popularItems(limit)
      const counts = new Map(
        [...Map.groupBy(all, String)].map(([name, { length }]) => [name, length]),
      )
      const descending = [...counts.values()].sort((a, b) => b - a)
      expect(popular.map(({ views }) => views)).toEqual(descending.slice(0, limit))
      for (const { item, views } of popular) expect(views).toBe(counts.get(item))
      expect(new Set(popular.map(({ item }) => item)).size).toBe(popular.length)
      await store.close()
    }),
    { numRuns: 50 },
  )
})
