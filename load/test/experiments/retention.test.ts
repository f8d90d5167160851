import { expect, test } from 'vitest'
import { retention } from '../../src/experiments/retention/retention.ts'
import { partOf } from '../../src/reporting/part.ts'
import { resultOf, runsOf } from '../support/result.ts'

test('a claim about trimming has the longest view of all rounds', () => {
  const values = { seconds: [1, 1, 1], longestMs: [2, 3, 8], max: [4, 5, 9] }
  const samples = runsOf({ cleanUp: 'one ZREMRANGEBYRANK' }, values)
  const { claims } = partOf({ experiment: retention, result: resultOf(retention, samples) })
  expect(claims).toEqual([
    expect.stringMatching(/ at most 8\.00 ms at a time, and the longest view took 9\.00 ms\.$/),
  ])
})
