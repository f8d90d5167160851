import { expect, test } from 'vitest'
import { type Call, seededRandom, skewedItems, workload } from '../../src/measure/workload.ts'

const tokens = (count: number) => Array.from({ length: count }, (_, index) => `token-${index}`)

test('the first item is drawn twice as often as the second, and ten times as often as the tenth', () => {
  const next = skewedItems(1_000, seededRandom(17))
  const views = new Map<string, number>()
  for (let count = 0; count < 200_000; count++) {
    const item = next()
    views.set(item, (views.get(item) ?? 0) + 1)
  }
  const first = views.get('load-item-1') ?? 0
  expect(first / (views.get('load-item-2') ?? 0)).toBeCloseTo(2, 0)
  expect(first / (views.get('load-item-10') ?? 0) / 10).toBeCloseTo(1, 0.5)
  expect(views.size).toBeGreaterThan(950) // nearly all items were drawn
  for (const none of ['load-item-0', 'load-item-1001']) expect(views.has(none)).toBe(false)
})

const tokenOf = ({ headers }: Call) => headers.authorization?.replace('Bearer ', '')

test('each connection has its own sessions; if there are too few, connections share them', () => {
  const many = workload({ tokens: tokens(5), connections: 2, items: 10, seed: 1 })
  expect(many.map((list) => new Set(list.map(tokenOf)))).toEqual([
    new Set(['token-0', 'token-2', 'token-4']),
    new Set(['token-1', 'token-3']),
  ])
  const few = workload({ tokens: tokens(2), connections: 3, items: 10, seed: 1 })
  expect(few.map(([view]) => view && tokenOf(view))).toEqual(['token-0', 'token-1', 'token-0'])
})

test('reads have the requested share, a third for each path; the same seed gives the same requests', () => {
  const plan = { tokens: tokens(40), connections: 8, items: 100, reads: 0.2, seed: 17 }
  const calls = workload(plan).flat()
  const counts = Map.groupBy(calls, ({ method, path }) => `${method} ${path}`)
  for (const [name, share] of [
    ['POST /views', 0.8],
    ...['GET /items/popular', 'GET /me', 'GET /me/views'].map((name) => [name, 0.2 / 3] as const),
  ] as const) {
    expect((counts.get(name)?.length ?? 0) / calls.length, name).toBeCloseTo(share, 1.5)
  }
  expect(workload(plan).flat()).toEqual(calls)
  expect(workload({ ...plan, seed: 18 }).flat()).not.toEqual(calls)
})
