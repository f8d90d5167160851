import { describe, expect, test } from 'vitest'
import { headersOf, seededRandom, skewedItems, workload } from '../src/drivers/http/workload.ts'

const tokens = (count: number) => Array.from({ length: count }, (_, index) => `token-${index}`)

test('the same seed gives the same numbers, another seed others', () => {
  const draw = (seed: number) => Array.from({ length: 5 }, seededRandom(seed))
  expect(draw(17)).toEqual(draw(17))
  expect(draw(17)).not.toEqual(draw(18))
})

test('numbers are spread evenly from 0 to below 1, for every seed', () => {
  for (const seed of [1, 17, 2 ** 31 - 2, 2 ** 31 - 1]) {
    const numbers = Array.from({ length: 20_000 }, seededRandom(seed))
    expect(Math.min(...numbers)).toBeGreaterThanOrEqual(0)
    expect(Math.max(...numbers)).toBeLessThan(1)
    for (const tenth of Array(10).keys()) {
      const within = numbers.filter((number) => Math.floor(number * 10) === tenth)
      expect(within.length / 2_000).toBeCloseTo(1, 0.5)
    }
  }
})

test('the first item is viewed twice as often as the second, ten times as often as the tenth', () => {
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
  expect(skewedItems(1, seededRandom(1))()).toBe('load-item-1')
})

test('each connection has sessions of its own; fewer than connections are shared', () => {
  const many = workload({ tokens: tokens(5), connections: 2, items: 10, seed: 1 })
  expect(many.map((list) => new Set(list.map(({ token }) => token)))).toEqual([
    new Set(['token-0', 'token-2', 'token-4']),
    new Set(['token-1', 'token-3']),
  ])
  const few = workload({ tokens: tokens(2), connections: 3, items: 10, seed: 1 })
  expect(few.map(([view]) => view?.token)).toEqual(['token-0', 'token-1', 'token-0'])
})

describe('reads', () => {
  const plan = { tokens: tokens(40), connections: 8, items: 100, seed: 17 }
  const calls = workload({ ...plan, reads: 0.2 }).flat()
  const counts = new Map<string, number>()
  for (const { method, path } of calls) {
    counts.set(`${method} ${path}`, (counts.get(`${method} ${path}`) ?? 0) + 1)
  }

  test('are the share that was asked for, and a third each', () => {
    const share = (name: string) => (counts.get(name) ?? 0) / calls.length
    expect([...counts.keys()].toSorted()).toEqual([
      ...['GET /items/popular', 'GET /me', 'GET /me/views', 'POST /views'],
    ])
    expect(share('POST /views')).toBeCloseTo(0.8, 1)
    for (const name of ['GET /items/popular', 'GET /me', 'GET /me/views']) {
      expect(share(name)).toBeCloseTo(0.2 / 3, 1.5)
    }
  })

  test('show the views of the sessions that record some; what is popular needs no session', () => {
    for (const { path, token, body } of calls) {
      expect(token === null).toBe(path === '/items/popular')
      expect(body === null).toBe(path !== '/views')
    }
    expect(headersOf({ method: 'GET', path: '/me', token: 'a', body: null })).toEqual({
      authorization: 'Bearer a',
    })
  })

  test('are none by default; the same seed asks for the same, another one for other things', () => {
    expect(
      workload(plan)
        .flat()
        .every(({ method }) => method === 'POST'),
    ).toBe(true)
    const seeded = (seed: number) => workload({ ...plan, reads: 0.2, seed })
    expect(seeded(17)).toEqual(seeded(17))
    expect(seeded(17)).not.toEqual(seeded(18))
    expect(
      workload({ ...plan, reads: 1 })
        .flat()
        .every(({ method }) => method === 'GET'),
    ).toBe(true)
  })
})
