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
 * Some tests have numbers in their names that chance decides (`x = 69873`). So a name that only one of
 * the first runs has is compared with its numbers blotted out, together with all that look like it then.
 *
 * @param reference the first run, then the repetitions; at least one.
 * @param candidate as many, though some may be missing.
 */
export function compare(reference: readonly Results[], candidate: readonly Results[]): Comparison {
  const [referenceFirst, candidateFirst] = [reference[0], candidate[0]]
  if (!referenceFirst || !candidateFirst) throw new RangeError('nothing to compare')
  const inBoth = (name: string) => referenceFirst.has(name) && candidateFirst.has(name)
  const all = [...referenceFirst.keys(), ...candidateFirst.keys()]
  const names = new Set(all.map((name) => (inBoth(name) ? name : blotted(name))))
  const same = { passed: 0, failed: 0, 'left-out': 0 }
  const failedInBoth: string[] = []
  const differences: Difference[] = []
  for (const name of names) {
    const see = (results: Results) => seenIn(results, name, !inBoth(name))
    const seen = { reference: reference.map(see), candidate: candidate.map(see) }
    const [status] = seen.reference
    if (status !== undefined && status !== 'absent' && status === seen.candidate[0]) {
      if (name !== endOfFile) same[status]++
      if (status === 'failed') failedInBoth.push(name)
    } else {
      differences.push({ name, verdict: verdictOn(seen.reference, seen.candidate), ...seen })
    }
  }
  names.delete(endOfFile)
  return { tests: names.size, same, failedInBoth, differences }
}

function seenIn(results: Results, name: string, loosely: boolean): Seen {
  if (!loosely) return results.get(name) ?? 'absent'
  const statuses = [...results].filter(([other]) => blotted(other) === name).map(([, one]) => one)
  return (
    (['failed', 'passed', 'left-out'] as const).find((one) => statuses.includes(one)) ?? 'absent'
  )
}

/** A name without its numbers. */
export function blotted(name: string): string {
  return name.replace(/\d+/g, 'N')
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
