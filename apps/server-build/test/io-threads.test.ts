import { expect, test } from 'vitest'
import { ioThreadsFor } from '../src/io-threads.ts'

test.each([
  [1, 1],
  [2, 1],
  [3, 1],
  [4, 3],
  [6, 3],
  [8, 4],
  [16, 8],
  [64, 8],
])('with %d cores Redis gets %d I/O threads', (cores, threads) => {
  expect(ioThreadsFor(cores)).toBe(threads)
})
