import { expect, test } from 'vitest'
import { BoundedCache } from '../src/tokens/bounded-cache.ts'

const SIZE = 10

test('drops entries that were not used recently, and holds at most two generations', () => {
  const cache = new BoundedCache<number, string>(SIZE)
  cache.set(-1, 'used')
  cache.set(-2, 'unused')
  for (let key = 0; key < 10 * SIZE; key++) {
    cache.set(key, 'another')
    expect(cache.get(-1)).toBe('used')
  }
  expect(cache.get(-2)).toBeUndefined()
  const held = Array.from({ length: 10 * SIZE }, (_, key) => key).filter((key) => cache.get(key))
  expect(held.length).toBeGreaterThanOrEqual(SIZE - 1)
  expect(held.length).toBeLessThanOrEqual(2 * SIZE)
})
