import { expect, test } from 'vitest'
import { bloomFilter } from '../../src/shop/bloom-filter.ts'

const names = (count: number, prefix: string) =>
  Array.from({ length: count }, (_, index) => `${prefix}-${index}`)

test.each([
  [1_000, 0.1],
  [10_000, 0.01],
  [10_000, 0.001],
])('with %i members the false-positive rate is about %f', (capacity, rate) => {
  const filter = bloomFilter({ capacity, falsePositiveRate: rate })
  const bits = new Set<number>()
  for (const name of names(capacity, 'member')) {
    for (const position of filter.positions(name)) bits.add(position)
  }
  const isMember = (name: string) => filter.positions(name).every((position) => bits.has(position))
  expect(names(capacity, 'member').every(isMember)).toBe(true)
  const found = names(20_000, 'other').filter(isMember).length / 20_000
  expect(found).toBeGreaterThan(0.5 * rate)
  expect(found).toBeLessThan(1.5 * rate)
  expect(Math.abs(filter.count(bits.size) / capacity - 1)).toBeLessThan(0.02)
})

test('a small number of members is counted exactly', () => {
  const filter = bloomFilter({ capacity: 10_000, falsePositiveRate: 0.01 })
  expect({ bits: filter.bits, hashes: filter.hashes }).toEqual({ bits: 95_851, hashes: 7 })
  const bits = new Set<number>()
  for (const [index, name] of names(50, 'member').entries()) {
    for (const position of filter.positions(name)) {
      expect(position).toBeLessThan(filter.bits)
      bits.add(position)
    }
    expect(filter.count(bits.size)).toBe(index + 1)
  }
  expect(filter.count(0)).toBe(0)
  expect(filter.count(filter.bits)).toBeGreaterThan(100_000)
})

test.each([
  [{ capacity: 0, falsePositiveRate: 0.01 }],
  [{ capacity: 10, falsePositiveRate: 0 }],
  [{ capacity: 10, falsePositiveRate: 1 }],
  [{ capacity: Number.NaN, falsePositiveRate: 0.01 }],
  [{ capacity: 1e9, falsePositiveRate: 0.01 }],
])('%j is rejected', (options) => {
  expect(() => bloomFilter(options)).toThrow(TypeError)
})
