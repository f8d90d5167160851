import type { TestStatus } from './output.ts'

/** The result of a test in one run; `absent`: the file ran, but the test did not appear. */
export type Seen = TestStatus | 'absent'

/**
 * - `worse`: the candidate fails, the reference does not
 * - `better`: the reference fails, the candidate does not
 * - `flaky`: unclear, because the results of one build vary
 * - `open`: the results differ, and the test was not run again
 */
export type Verdict = 'worse' | 'better' | 'flaky' | 'open'

/** A test whose results differ between the first runs of the two builds. */
export interface Difference {
  name: string
  verdict: Verdict
  /** The first run, then the repetitions. */
  reference: Seen[]
  candidate: Seen[]
}

/** An additional result per file: fails if the suite stopped within the file. */
export const endOfFile = '(the file runs to its end)'

export interface Comparison {
  /** Number of tests that appeared in the first run of either build. */
  tests: number
  /** Number of tests with the same result in both first runs. */
  same: Record<TestStatus, number>
  /** Names of tests that failed in both first runs. */
  failedInBoth: string[]
  differences: Difference[]
}

/** The results of one run of a file, by test name. */
export type Results = ReadonlyMap<string, TestStatus>

/**
 * Compares the runs of one file on two builds.
 *
 * Some tests have random numbers in their names (`x = 69873`). A name that appears in only one of the first
 * runs is therefore compared without its numbers, together with all names that are equal without numbers.
 *
 * @param reference the first run, then the repetitions; at least one run.
 * @param candidate the same for the candidate; repetitions may be missing.
 */
export function compare(reference: readonly Results[], candidate: readonly Results[]): Comparison {
  const [referenceFirst, candidateFirst] = [reference[0], candidate[0]]
  if (!referenceFirst || !candidateFirst) throw new RangeError('nothing to compare')
  const inBoth = (name: string) => referenceFirst.has(name) && candidateFirst.has(name)
  const all = [...referenceFirst.keys(), ...candidateFirst.keys()]
  const names = new Set(all.map((name) => (inBoth(name) ? name : withoutNumbers(name))))
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
  const statuses = [...results]
    .filter(([other]) => withoutNumbers(other) === name)
    .map(([, one]) => one)
  return (
    (['failed', 'passed', 'left-out'] as const).find((one) => statuses.includes(one)) ?? 'absent'
  )
}

/** A name with its numbers replaced by `N`. */
export function withoutNumbers(name: string): string {
  return name.replace(/\d+/g, 'N')
}

/**
 * Judges a test by its repetitions. The first runs are known to differ, which a flaky test does now and then.
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
