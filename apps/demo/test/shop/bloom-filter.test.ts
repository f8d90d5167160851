import { expect, test } from 'vitest'
import { bloomFilter } from '../../src/shop/bloom-filter.ts'

test.each([
  [10_000, 0.01],
  [10_000, 0.001],
])('with %i members the false-positive rate is about %f', (capacity, rate) => {
  const filter = bloomFilter({ capacity, falsePositiveRate: rate })
  const bits = new Set<number>()
  for (let member = 0; member < capacity; member++) {
    for (const position of filter.positions(`member-${member}`)) bits.add(position)
    if (member < 50) expect(filter.count(bits.size)).toBe(member + 1) // exact while there are few
  }
  expect([...bits].every((position) => position < filter.bits)).toBe(true)
  const found = (prefix: string, count: number) =>
    Array.from({ length: count }, (_, index) => filter.positions(`${prefix}-${index}`)).filter(
      (positions) => positions.every((position) => bits.has(position)),
    ).length
  expect(found('member', capacity)).toBe(capacity)
  expect(found('other', 20_000) / 20_000 / rate).toBeCloseTo(1, 0)
  expect(filter.count(bits.size) / capacity).toBeCloseTo(1, 1)
  expect(filter.count(filter.bits)).toBeGreaterThan(capacity)
})

test.each([
  [{ capacity: 0, falsePositiveRate: 0.01 }],
  [{ capacity: 10, falsePositiveRate: 1 }],
  [{ capacity: Number.NaN, falsePositiveRate: 0.01 }],
  [{ capacity: 1e9, falsePositiveRate: 0.01 }],
])('%j is rejected', (options) => {
  expect(() => bloomFilter(options)).toThrow(TypeError)
})
