import { expect, test } from 'vitest'
import type { TestResult } from '../../src/upstream/output.ts'
import {
  comparisonOf,
  type ResultRecord,
  type RunRecord,
  roles,
} from '../../src/upstream/record.ts'
import { count, describe, report } from '../../src/upstream/report.ts'
import { emptyRecord } from './fixture.ts'

/** A result with these runs, alternately of the reference and the candidate. */
function record(...lists: TestResult[][]): ResultRecord {
  return {
    ...emptyRecord(),
    runs: lists.map(
      (tests, index): RunRecord => ({
        file: 'unit/limits',
        ioThreads: 2,
        role: roles[index % 2] ?? 'reference',
        attempt: Math.floor(index / 2),
        key: '',
        startedAt: '',
        seconds: 1,
        end: 'finished',
        tests,
      }),
    ),
  }
}

const passed: TestResult[] = [{ name: 'maxclients', status: 'passed' }]
const failed: TestResult[] = [
  { name: 'maxclients', status: 'failed', detail: "Expected 'ERR max' to match '*max*'" },
]

function reported(of: ResultRecord) {
  const comparisons = of.runs.slice(0, 1).flatMap(({ file, ioThreads }) => {
    return comparisonOf(of.runs, file, ioThreads) ?? []
  })
  return { comparisons, text: report(of, comparisons), line: comparisons.map(describe).join('') }
}

test('reports that no test differs', () => {
  const { text, line, comparisons } = reported(record(passed, passed))
  expect(line).toBe('1 test, no difference')
  expect(text).toContain('Redis 8.0.6 (Debian 8.0.6-3 (forky))')
  expect(text).toContain('patched-bbbbbbbbbbbb against stock-aaaaaaaaaaaa')
  expect(text).toContain('No test differs.')
  expect(count(comparisons, 'worse')).toBe(0)
})

test('shows a test that is worse with its passed runs and the message of the suite', () => {
  const { text, line, comparisons } = reported(
    record(passed, failed, passed, passed, passed, failed),
  )
  expect(line).toBe('1 test, different: maxclients (WORSE)')
  expect(text).toMatch(/unit\/limits +maxclients +3 of 3 +1 of 3 +WORSE/)
  expect(text).toContain("    Expected 'ERR max' to match '*max*'")
  expect(count(comparisons, 'worse')).toBe(1)
})

test('lists tests that fail on both, but not as a difference', () => {
  const { text, line } = reported(record(failed, failed))
  expect(line).toBe('1 test, no difference, 1 failed on both')
  expect(text).toContain('No test differs.')
  expect(text).toContain('unit/limits, I/O threads 2: maxclients')
})

test('our own tests must pass and need no reference', () => {
  const of = record([], failed, [], failed, [], passed)
  of.runs = of.runs
    .filter(({ role }) => role === 'candidate')
    .map((run) => ({ ...run, file: 'unit/onetrip/closing' }))
  expect(reported(of).line).toBe('1 test, different: maxclients (WORSE)')
  expect(reported(of).text).toMatch(/maxclients +- +1 of 3 +WORSE/)
  for (const run of of.runs) run.tests = passed
  expect(reported(of).line).toBe('1 test, no difference')
})

test('a file that has run on only one build is not compared', () => {
  expect(reported(record(passed)).comparisons).toEqual([])
})
