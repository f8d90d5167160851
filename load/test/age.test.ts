import { expect, test } from 'vitest'
import { untilSteady } from '../src/drivers/age.ts'

test.for([
  ['as long as the rate rises', [1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 9], 10],
  ['for half a minute at least', [5, 5, 5, 5, 5, 5, 5], 6],
  ['until a rise is small', [10, 11, 12, 13, 14, 15, 15.1, 15.2, 20], 8],
  ['not for ever', Array.from({ length: 99 }, (_, run) => 2 ** run), 36],
] as const)('loads a process %s', async ([, rates, runs]) => {
  let next = 0
  expect(await untilSteady(async () => rates[next++] ?? Number.NaN)).toBe(runs)
})
