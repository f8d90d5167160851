import type { Experiment } from '../experiment/experiment.ts'
import { figure, percent } from '../experiment/figures.ts'
import type { Result } from '../experiment/result.ts'
import type { Row, Rows } from '../experiment/rows.ts'
import type { Facts, Metric } from '../experiment/shape.ts'
import { type Change, changeBetween } from '../experiment/statistics.ts'
import { DISTURBED } from '../measure/machine-cpu.ts'
import { commitOf } from '../reporting/part.ts'

/** In what two results differ besides their figures, each as `what: before, now after`. */
export interface Differences {
  /** In what was sent to what: then the figures are of different things, and nothing is judged. */
  load: string[]
  /** In the machine: then CPU times are not judged. */
  machine: string[]
  /** In what other programs took of it: then rates, latencies and CPU times are not judged. */
  disturbance: string[]
  /** In how much was measured. */
  extent: string[]
  /** In software and code, which may be why something changed. */
  software: string[]
}

export function differencesOf(experiment: Experiment, before: Result, after: Result): Differences {
  const differ = (factsOf: (result: Result, other: Result) => Facts) =>
    differencesBetween(factsOf(before, after), factsOf(after, before))
  return {
    load: [
      ...differ(({ options }) => loadOptions(experiment, options)),
      // A stack that runs already does not tell everything.
      ...differ(({ load }, other) =>
        Object.fromEntries(
          Object.entries(load).filter(([name]) => (other.load[name] ?? null) !== null),
        ),
      ),
    ],
    machine: differ(({ machine: { cpu, cores } }) => ({ processor: cpu, cores })),
    disturbance: disturbanceOf(before, after),
    extent: differ(({ samples, options: { duration } }) => ({
      rounds: new Set(samples.map(({ round }) => round)).size,
      'seconds per run': String(duration),
    })),
    software: differ((result) => ({
      ...result.software,
      Node: result.machine.node,
      kernel: result.machine.kernel,
      commit: commitOf(result),
    })),
  }
}

/** The options that describe the load, as text. */
export function loadOptions(experiment: Experiment, options: Result['options']): Facts {
  return Object.fromEntries(
    experiment.loadOptions.map((name) => [name, String(options[name] ?? 'none')]),
  )
}

/** As `what: before, now after`, of what is not the same in both. */
export function differencesBetween(before: Facts, after: Facts): string[] {
  const textOf = (facts: Facts, name: string) => String(facts[name] ?? 'none')
  return Object.keys({ ...before, ...after })
    .filter((name) => textOf(before, name) !== textOf(after, name))
    .map((name) => `${name}: ${textOf(before, name)}, now ${textOf(after, name)}`)
}

/**
 * Beside busy programs a request costs more CPU time (caches, the other half of the core), and the cheap
 * variants lose more than the dear ones: a calm run and a disturbed one differ although nothing changed.
 */
function disturbanceOf({ elsewhere: old }: Result, { elsewhere: now }: Result): string[] {
  if (Math.abs((now ?? 0) - (old ?? 0)) < DISTURBED) return []
  return [`CPU time that went elsewhere: ${percent(old ?? 0)}, now ${percent(now ?? 0)}`]
}

/**
 * `better` and `worse`: by the threshold or more, and beyond noise. `same`: it did not get worse by as
 * much as the threshold, beyond noise. `unclear`: the rounds scatter too much. `shown`: not judged, because
 * it depends on more than on what is compared.
 */
type Verdict = 'better' | 'worse' | 'same' | 'unclear' | 'shown'

/** A metric of a case, before and after. */
export interface Comparison {
  /** Of the newer result. */
  row: Row
  metric: Metric
  /** The values are multiples of this row's in the same round; null where they stand by themselves. */
  reference: Row | null
  /** In each round. */
  old: number[]
  now: number[]
  change: Change
  verdict: Verdict
}

/** A case that two results have. */
export interface Pair {
  old: Row
  now: Row
}

/** The same case in two results, in the order of the newer one. */
export function pairsOf(before: Rows, after: Rows): Pair[] {
  return after.all.flatMap((now) => {
    const old = before.find(now.case)
    return old ? [{ old, now }] : []
  })
}

/** Of the interval of a change, while a dozen are looked at together. */
const CONFIDENCE = 0.99
const A_DOZEN = 12

/**
 * Compares two results, case by case. What depends on the pace of the machine is judged as a multiple of
 * the case's baseline in the same round, where both results have one. With more than a dozen figures the
 * intervals are wider (Bonferroni's correction).
 *
 * @param threshold a smaller change does not count: 0.1 for 10 %.
 * @returns also the confidence of the intervals.
 */
export function judge(
  before: Rows,
  after: Rows,
  differences: Differences,
  threshold: number,
): { comparisons: Comparison[]; confidence: number } {
  const candidates = pairsOf(before, after).flatMap((pair) =>
    candidatesOf(pair, referenceOf(pair, before, after), differences),
  )
  const judged = candidates.filter(({ isJudged }) => isJudged).length
  const confidence = 1 - ((1 - CONFIDENCE) * A_DOZEN) / Math.max(A_DOZEN, judged)
  const comparisons = candidates.map(({ isJudged, ...candidate }): Comparison => {
    const least = candidate.reference ? 0 : (candidate.metric.least ?? Number.MIN_VALUE)
    const atLeast = (values: number[]) => values.map((value) => Math.max(least, value))
    const change = changeBetween(atLeast(candidate.old), atLeast(candidate.now), confidence)
    const verdict = isJudged ? verdictOf(change, candidate.metric, threshold) : 'shown'
    return { ...candidate, change, verdict }
  })
  return { comparisons, confidence }
}

/** The baseline of a case in both results; null where no other case has it as well. */
function referenceOf({ now }: Pair, before: Rows, after: Rows): Pair | null {
  const base = now.baseline(after)
  const old = base && before.find(base.case)
  const isShared = after.all.some((row) => row !== base && row.baseline(after) === base)
  return old && isShared ? { old, now: base } : null
}

type Candidate = Omit<Comparison, 'change' | 'verdict'> & { isJudged: boolean }

function candidatesOf(pair: Pair, reference: Pair | null, differences: Differences): Candidate[] {
  const isReference = reference?.now === pair.now
  const isSameLoad = differences.load.length === 0 && rateText(pair) === null
  const isJudged = ({ kind }: Metric, base: Pair | null) => {
    if (kind === 'count') return isSameLoad
    if (!isSameLoad || differences.disturbance.length > 0) return false
    if (kind === 'cpu') return differences.machine.length === 0
    const rows = [pair, ...(base ? [base] : [])].flatMap(({ old, now }) => [old, now])
    return base === reference && !rows.some((row) => row.hasDoubtfulRate)
  }
  return pair.now.shape.metrics
    .filter(({ kind, better }) => kind !== undefined && better !== undefined)
    .flatMap((metric) => {
      const isRelative = metric.kind === 'pace' && reference && !isReference
      return (isRelative ? [null, reference] : [null]).map((base) => ({
        row: pair.now,
        metric,
        reference: base?.now ?? null,
        old: valuesOf(pair.old, metric, base?.old),
        now: valuesOf(pair.now, metric, base?.now),
        isJudged: isJudged(metric, base),
      }))
    })
    .filter(({ old, now }) => old.length >= 2 && now.length >= 2)
}

/** A metric in each round; with a base, as a multiple of the base's in the same round. */
function valuesOf(row: Row, { name }: Metric, base: Row | undefined): number[] {
  // Without a single answer there is no pace to be a multiple of.
  return base ? row.ratios(name, base).filter((ratio) => ratio > 0) : row.values(name)
}

/** Rates that differ by a larger factor are another load. */
const SAME_RATE = 1.1

/** In what a pair differs that was asked for and is no factor; null where that is nearly the same. */
export function rateText({ old, now }: Pair): string | null {
  const given = now.shape.metrics.find(({ kind }) => kind === 'given')
  const [before, after] = [old, now].map((row) => (given && row.median(given.name)) ?? null)
  if (!before || !after) return null
  const isSame = Math.max(after / before, before / after) < SAME_RATE
  return isSame ? null : `${figure(before)}, now ${figure(after)}`
}

function verdictOf({ mean, interval }: Change, { better }: Metric, threshold: number): Verdict {
  // 10 % slower is 10 % more time for a request: of rates, it is the inverse that counts.
  const cost =
    better === 'lower'
      ? { mean, ...interval }
      : { mean: 1 / mean, low: 1 / interval.high, high: 1 / interval.low }
  if (cost.low > 1 && cost.mean >= 1 + threshold) return 'worse'
  if (cost.high < 1 && 1 / cost.mean >= 1 + threshold) return 'better'
  return cost.high < 1 + threshold ? 'same' : 'unclear'
}
