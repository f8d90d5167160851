import { expect, test } from 'vitest'
import { BoundedCache } from '../src/core/tokens/bounded-cache.ts'

const SIZE = 10

const held = (cache: BoundedCache<number, string>, keys: number) =>
  Array.from({ length: keys }, (_, key) => key).filter((key) => cache.get(key) !== undefined)

test('keeps all entries of a generation, and at most two generations', () => {
  const cache = new BoundedCache<number, string>(SIZE)
  for (let key = 0; key < SIZE; key++) cache.set(key, `value ${key}`)
  expect(held(cache, SIZE)).toHaveLength(SIZE)
  for (let key = 0; key < 100 * SIZE; key++) cache.set(key, `value ${key}`)
  expect(cache.get(100 * SIZE - 1)).toBe(`value ${100 * SIZE - 1}`)
  expect(held(cache, 100 * SIZE).length).toBeLessThanOrEqual(2 * SIZE)
})

test('drops entries that were not used recently, and keeps the others', () => {
  const cache = new BoundedCache<number, string>(SIZE)
  cache.set(-1, 'used')
  cache.set(-2, 'unused')
  for (let key = 0; key < 10 * SIZE; key++) {
    cache.set(key, 'another')
    expect(cache.get(-1)).toBe('used')
  }
  expect(cache.get(-2)).toBeUndefined()
})
