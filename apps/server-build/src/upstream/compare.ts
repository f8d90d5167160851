import type { TestStatus } from './output.ts'

/** What a test did in one run; `absent`: the file ran, and the test did not come up. */
export type Seen = TestStatus | 'absent'

/**
 * - `worse`: the candidate fails where the reference does not
 * - `better`: the reference fails where the candidate does not
 * - `flaky`: neither can be said; the same build gives different results
 * - `open`: they differ, and were not run again
 */
export type Verdict = 'worse' | 'better' | 'flaky' | 'open'

/** A test that differed in the first run of a file on each build. */
export interface Difference {
  name: string
  verdict: Verdict
  /** The first run, then the repetitions. */
  reference: Seen[]
  candidate: Seen[]
}

/** A result beside those of the tests: fails when something ended the suite within the file. */
export const endOfFile = '(the file runs to its end)'

export interface Comparison {
  /** Names of tests that came up in the first run of either build. */
  tests: number
  /** Those that did the same in both first runs. */
  same: Record<TestStatus, number>
  /** Names of the tests that failed in both first runs. */
  failedInBoth: string[]
  differences: Difference[]
}

/** The results of one run of a file, by the tests' names. */
export type Results = ReadonlyMap<string, TestStatus>

/**
 * Compares the runs of one file on two builds.
 *
 * @param reference the first run, then the repetitions; at least one.
 * @param candidate as many, though some may be missing.
 */
export function compare(reference: readonly Results[], candidate: readonly Results[]): Comparison {
  const [referenceFirst, candidateFirst] = [reference[0], candidate[0]]
  if (!referenceFirst || !candidateFirst) throw new RangeError('nothing to compare')
  const names = new Set([...referenceFirst.keys(), ...candidateFirst.keys()])
  const same = { passed: 0, failed: 0, 'left-out': 0 }
  const failedInBoth: string[] = []
  const differences: Difference[] = []
  for (const name of names) {
    const status = referenceFirst.get(name)
    if (status !== undefined && status === candidateFirst.get(name)) {
      if (name !== endOfFile) same[status]++
      if (status === 'failed') failedInBoth.push(name)
      continue
    }
    const seen = {
      reference: reference.map((results) => results.get(name) ?? 'absent'),
      candidate: candidate.map((results) => results.get(name) ?? 'absent'),
    }
    differences.push({ name, verdict: verdictOn(seen.reference, seen.candidate), ...seen })
  }
  names.delete(endOfFile)
  return { tests: names.size, same, failedInBoth, differences }
}

/**
 * Judges a test by its repetitions: that the first runs differed is what made it a case, and a test that
 * fails now and then was bound to differ somewhere.
 */
export function verdictOn(reference: readonly Seen[], candidate: readonly Seen[]): Verdict {
  const again = candidate.slice(1)
  if (again.length === 0 || reference.length < 2) return 'open'
  const fails = again.includes('failed') && !reference.includes('failed')
  const goesMissing = again.includes('absent') && !reference.includes('absent')
  const neverPasses =
    !candidate.includes('passed') && reference.filter(passed).length > reference.length / 2
  if (fails || goesMissing || neverPasses) return 'worse'
  if (candidate.every(passed) && !reference.slice(1).every(passed)) return 'better'
  return 'flaky'
}

function passed(seen: Seen): boolean {
  return seen === 'passed'
}
