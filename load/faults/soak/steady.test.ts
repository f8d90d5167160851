import { expect, test } from 'vitest'
import type { Reading } from './readings.ts'
import { planOf } from './run.ts'
import { judge } from './steady.ts'

const MB = 1e6
const WARM_UP_SECONDS = 100

/** A reading of the heap every five seconds for half an hour. */
const heap = (at: (second: number, index: number) => number): Reading[] =>
  Array.from({ length: 360 }, (_, index) => {
    return { second: 5 * index, values: { 'API heap': at(5 * index, index) } }
  })

const verdictOf = (readings: Reading[]) =>
  judge(readings, WARM_UP_SECONDS).find(({ resource }) => resource === 'API heap')

const noise = (index: number) => ((index * 7_919) % 1_000) / 1_000 - 0.5

test('noise is steady, and growth during the warm-up does not count', () => {
  const readings = heap(
    (second, index) => (second < WARM_UP_SECONDS ? 10 : 40 + 6 * noise(index)) * MB,
  )
  const verdict = verdictOf(readings)
  expect(verdict).toMatchObject({ isSteady: true, bound: expect.closeTo(6 * MB, -6) })
  expect(verdict?.start).toBeCloseTo(40 * MB, -6)
})

test('a leak that is smaller than the noise is detected', () => {
  const readings = heap((second, index) => (40 + 6 * noise(index) + (8 * second) / 1_800) * MB)
  const { start = 0, end = 0, isSteady } = verdictOf(readings) ?? {}
  expect(isSteady).toBe(false)
  expect(((end ?? 0) - (start ?? 0)) / MB).toBeCloseTo(7.5, 0)
})

test('outliers in a few windows have no effect', () => {
  const inFault = (second: number) => second > 1_500
  expect(verdictOf(heap((second) => (inFault(second) ? 90 : 40) * MB))?.isSteady).toBe(true)
})

test('too few readings are not steady', () => {
  const verdict = verdictOf(heap(() => 40 * MB).slice(0, 23))
  expect(verdict).toMatchObject({ start: null, bound: null, isSteady: false })
})

test.for([
  [1, 5],
  [30, 26],
])('%i minutes have %i faults, none in the warm-up', ([minutes = 0, faults]) => {
  const { seconds, warmUpSeconds, faultsAt } = planOf({ minutes }, 5)
  expect(faultsAt).toHaveLength(faults as number)
  expect(faultsAt[0]).toBe(warmUpSeconds)
  expect(faultsAt.at(-1)).toBeLessThan(0.95 * seconds)
})
