import type { Row, Rows } from '../experiment/rows.ts'
import type { Metric } from '../experiment/shape.ts'
import { type Change, changeBetween, summarize, summarizeRatios } from '../experiment/statistics.ts'
import { type Differences, haveSameRate, type Pair, pairsOf } from './differences.ts'

/**
 * `better` and `worse`: by the threshold or more, and beyond noise. `same`: it did not get worse by as
 * much as the threshold, beyond noise. `unclear`: the rounds scatter too much to tell. `told`: not judged,
 * because it depends on more than on what is compared.
 */
type Verdict = 'better' | 'worse' | 'same' | 'unclear' | 'told'

/** A metric of a case, before and after. */
export interface Comparison {
  /** Of the newer result. */
  row: Row
  metric: Metric
  /** Whose value of the same round this one is a multiple of; null where it stands by itself. */
  reference: Row | null
  /** Over the rounds: geometric means, of which one is the change from the other. */
  before: number
  after: number
  change: Change
  verdict: Verdict
}

export interface Judgement {
  comparisons: Comparison[]
  /** Of the intervals in which the changes are. */
  confidence: number
}

/** Of the interval of a change, while a dozen are looked at together. */
const CONFIDENCE = 0.99
const A_DOZEN = 12

interface Candidate extends Omit<Comparison, 'change' | 'verdict'> {
  values: { old: number[]; now: number[] }
  isJudged: boolean
}

/**
 * Compares two results, case by case. What depends on the pace of the machine is judged as a multiple of
 * the case's baseline in the same round, where both results have one. Of more than a dozen figures the
 * intervals are as much wider as it takes for no more of all of them to be wrong.
 *
 * @param threshold a smaller change is none: 0.1 for 10 %.
 */
export function judge(
  before: Rows,
  after: Rows,
  differences: Differences,
  threshold: number,
): Judgement {
  const candidates = pairsOf(before, after).flatMap((pair) => {
    const reference = referenceOf(pair, before, after)
    return candidatesOf(pair, reference, differences)
  })
  const judged = candidates.filter(({ isJudged }) => isJudged).length
  const confidence = 1 - ((1 - CONFIDENCE) * A_DOZEN) / Math.max(A_DOZEN, judged)
  const comparisons = candidates.map(({ values: { old, now }, isJudged, ...candidate }) => {
    const change = changeBetween(old, now, confidence)
    const verdict = isJudged ? verdictOf(change, candidate.metric, threshold) : ('told' as const)
    return { ...candidate, change, verdict }
  })
  return { comparisons, confidence }
}

/** The baseline of a case in both results; null where no other case has it as well. */
function referenceOf({ now }: Pair, before: Rows, after: Rows): Pair | null {
  const base = now.baseline(after)
  const old = base && before.find(base.case)
  if (!old) return null
  const isShared = after.all.some((row) => row !== base && row.baseline(after) === base)
  return isShared ? { old, now: base } : null
}

function candidatesOf(pair: Pair, reference: Pair | null, differences: Differences): Candidate[] {
  const { now } = pair
  const isReference = reference?.now === now
  const isJudged = ({ kind }: Metric, base: Pair | null) => {
    if (differences.load.length > 0 || !haveSameRate(pair)) return false
    if (kind === 'count') return true
    if (differences.disturbance.length > 0) return false
    if (kind === 'cpu') return differences.machine.length === 0
    const rows = [pair.old, pair.now, ...(base ? [base.old, base.now] : [])]
    return base === reference && !rows.some((row) => row.hasDoubtfulRate)
  }
  return now.shape.metrics
    .filter(({ kind, better }) => kind !== undefined && better !== undefined)
    .flatMap((metric) => {
      const relative = metric.kind === 'pace' && reference !== null && !isReference
      return (relative ? [null, reference] : [null]).flatMap((base) => {
        const old = valuesOf(pair.old, metric, base?.old)
        const now = valuesOf(pair.now, metric, base?.now)
        if (old.length < 2 || now.length < 2) return []
        const least = base === null ? (metric.least ?? Number.MIN_VALUE) : 0
        const atLeast = (each: number) => Math.max(least, each)
        return [
          {
            ...{ row: pair.now, metric, reference: base?.now ?? null },
            ...{ before: meanOf(old), after: meanOf(now) },
            values: { old: old.map(atLeast), now: now.map(atLeast) },
            isJudged: isJudged(metric, base),
          },
        ]
      })
    })
}

/** The geometric mean; the median where a round has nothing at all. */
function meanOf(values: readonly number[]): number {
  return values.every((value) => value > 0)
    ? summarizeRatios(values).mean
    : summarize(values).median
}

/** A metric in each round; with a base, as a multiple of the base's in the same round. */
function valuesOf(row: Row, { name }: Metric, base: Row | undefined): number[] {
  if (!base) return row.values(name)
  // Without a single answer there is no pace to be a multiple of.
  return row.ratios(name, base).filter((ratio) => ratio > 0)
}

function verdictOf(change: Change, { better }: Metric, threshold: number): Verdict {
  const { mean, interval } = change
  const { low, high } = interval
  // 10 % slower is 10 % more time for a request: of rates, it is the inverse that counts.
  const cost =
    better === 'lower' ? { mean, low, high } : { mean: 1 / mean, low: 1 / high, high: 1 / low }
  if (cost.low > 1 && cost.mean >= 1 + threshold) return 'worse'
  if (cost.high < 1 && 1 / cost.mean >= 1 + threshold) return 'better'
  return cost.high < 1 + threshold ? 'same' : 'unclear'
}
