import { expect, test } from 'vitest'
import { interpolate, largestWithin, lineThrough, valueAt } from '../../src/capacity/points.ts'

const points = [
  [0, 10],
  [10, 30],
  [20, 40],
] as const

test.each([
  [0, 10],
  [5, 20],
  [10, 30],
  [15, 35],
  [40, 60],
])('interpolates %d to %d', (x, y) => {
  expect(interpolate(points, x)).toBeCloseTo(y)
})

test('interpolated values never decrease, even if measured values do', () => {
  const noisy = [
    [0, 10],
    [10, 30],
    [20, 25],
  ] as const
  expect([10, 15, 20, 40].map((x) => interpolate(noisy, x))).toEqual([30, 30, 30, 30])
})

test('finds the largest x whose value is within a limit', () => {
  expect([20, 30, 60, 5].map((y) => largestWithin(points, y))).toEqual([5, 10, 40, 1])
})

test('fits a line without negative parameters', () => {
  const line = lineThrough([
    [1, 12],
    [2, 14],
    [3, 16],
  ])
  expect(line.constant).toBeCloseTo(10)
  expect(line.slope).toBeCloseTo(2)
  expect(valueAt(line, 5)).toBeCloseTo(20)
  const falling = lineThrough([
    [0, 5],
    [1, 4],
  ])
  expect(falling).toEqual({ constant: 5, slope: 0 })
})
