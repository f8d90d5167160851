import fc from 'fast-check'
import { expect, test } from 'vitest'
import { quantity, withPrefix } from '../../src/capacity/units.ts'

test.each([
  ['250000', 250_000],
  ['10k', 10_000],
  ['10K', 10_000],
  ['1.5M', 1_500_000],
  ['1.5m', 1_500_000],
  ['2B', 2e9],
  ['2g', 2e9],
  ['1T', 1e12],
  [' 7 ', 7],
])('parses %j as %d', (text, value) => {
  expect(quantity(1)(text)).toBe(value)
})

test.each(['0', '-1', '10X', '', 'k', '1e6', '1.5', '0.0001k', '2T', '1,000', '10 kk', 'NaN'])(
  'rejects %j',
  (text) => {
    expect(() => quantity(1)(text)).toThrow('It must be a number from 1 to 1T, such as')
  },
)

test('accepts a unit after the number', () => {
  expect([quantity(1, 'B')('32GB'), quantity(1, 'B')('32G')]).toEqual([32e9, 32e9])
  expect(quantity(1, 'b/s')('10Gb/s')).toBe(10e9)
  expect(() => quantity(1, 'B')('32GiB')).toThrow('from 1B to 1TB')
  expect(() => quantity(1)('32GB')).toThrow('It must be')
})

test.each([
  [0, 'B', '0.00 B'],
  [999, 'B', '999 B'],
  [1_000, 'B', '1.00 kB'],
  [1.5e12, 'B', '1.50 TB'],
  [10e9, 'b/s', '10.0 Gb/s'],
])('formats %d %s as %s', (value, unit, text) => {
  expect(withPrefix(value, unit)).toBe(text)
})

test('equal numbers with different prefixes have the same value', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1_000 }), (count) => {
      expect(quantity(1)(`${count}k`)).toBe(quantity(1)(`${count}000`))
      expect(quantity(1)(`${count}M`)).toBe(quantity(1)(`${count}000k`))
    }),
  )
})
