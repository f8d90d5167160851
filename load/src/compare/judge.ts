import { type Change, changeBetween, median, summarizeRatios } from '../statistics.ts'
import { commonRows, type Differences, haveSameRate, type Pair } from './circumstances.ts'
import type { Comparable, Measure, Row } from './comparable.ts'

/**
 * `better` and `worse`: by the threshold or more, and beyond noise. `same`: it did not get worse by as
 * much as the threshold, beyond noise. `unclear`: the rounds scatter too much to tell. `told`: not judged,
 * because it depends on more than on what is compared.
 */
type Verdict = 'better' | 'worse' | 'same' | 'unclear' | 'told'

/** One figure of one variant, before and after. */
export interface Comparison {
  /** Of the newer result. */
  row: Row
  measure: Measure
  /** Whose figure of the same round this one is a multiple of; null where it stands by itself. */
  reference: string | null
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

/** What the pace of the others is a multiple of, the first of these that is there. */
const references = ['naive', 'naive-lean', 'sequential', 'pipeline', 'noop']

interface Candidate extends Omit<Comparison, 'change' | 'verdict'> {
  figures: { old: number[]; now: number[] }
  isJudged: boolean
}

/**
 * Compares two results, row by row. What depends on the pace of the machine is judged as a multiple of a
 * reference that ran in the same rounds, where both results have one. Of more than a dozen figures the
 * intervals are as much wider as it takes for no more of all of them to be wrong.
 *
 * @param threshold a smaller change is none: 0.1 for 10 %.
 */
export function judge(
  before: Comparable,
  after: Comparable,
  differences: Differences,
  threshold: number,
): Judgement {
  const candidates = commonRows(before.rows, after.rows).flatMap((pair) => {
    const all = { before: before.rows, after: after.rows }
    return candidatesOf(pair, referenceRow(pair, all), differences)
  })
  const judged = candidates.filter(({ isJudged }) => isJudged).length
  const confidence = 1 - ((1 - CONFIDENCE) * A_DOZEN) / Math.max(A_DOZEN, judged)
  const comparisons = candidates.map(({ figures: { old, now }, isJudged, ...candidate }) => {
    const change = changeBetween(old, now, confidence)
    const verdict = isJudged ? verdictOf(change, candidate.measure, threshold) : ('told' as const)
    return { ...candidate, change, verdict }
  })
  return { comparisons, confidence }
}

/** The row whose pace those of the others at its place are compared with; null where there are no others. */
function referenceRow(
  { row: { at } }: Pair,
  { before, after }: { before: readonly Row[]; after: readonly Row[] },
): Pair | null {
  const here = commonRows(before, after).filter(({ row }) => row.at === at)
  const named = (name: string) => here.find(({ row }) => row.variant === name)
  const usual = references.map(named).find((pair) => pair !== undefined)
  return here.length > 1 ? (usual ?? here[0] ?? null) : null
}

function candidatesOf(pair: Pair, reference: Pair | null, differences: Differences): Candidate[] {
  const { row, old } = pair
  const isReference = reference?.row.variant === row.variant
  const isJudged = ({ kind }: Measure, base: Pair | null) => {
    if (differences.load.length > 0 || !haveSameRate(pair)) return false
    if (kind === 'count') return true
    if (differences.disturbance.length > 0) return false
    if (kind === 'cpu') return differences.machine.length === 0
    const limited = [row, old, base?.row, base?.old].some((one) => one?.limited)
    return base === reference && !limited
  }
  return row.figures.flatMap(({ measure }) => {
    const relative = measure.kind === 'pace' && reference !== null && !isReference
    return (relative ? [null, reference] : [null]).flatMap((base) => {
      const figures = {
        old: figuresIn(old, measure, base?.old ?? null),
        now: figuresIn(row, measure, base?.row ?? null),
      }
      if (figures.old.length < 2 || figures.now.length < 2) return []
      const least = base === null ? measure.least : 0
      const atLeast = (each: number) => Math.max(least, each)
      return [
        {
          ...{ row, measure, reference: base?.row.variant ?? null },
          ...{ before: meanOf(figures.old), after: meanOf(figures.now) },
          figures: { old: figures.old.map(atLeast), now: figures.now.map(atLeast) },
          isJudged: isJudged(measure, base),
        },
      ]
    })
  })
}

/** The geometric mean; the median where a round has nothing at all. */
function meanOf(figures: readonly number[]): number {
  return figures.every((figure) => figure > 0) ? summarizeRatios(figures).mean : median(figures)
}

/** What a measure is in each round; with a base, as a multiple of the base's in the same round. */
function figuresIn(row: Row, { name }: Measure, base: Row | null): number[] {
  const roundsOf = (of: Row) => of.figures.find(({ measure }) => measure.name === name)?.rounds
  return [...(roundsOf(row) ?? [])].flatMap(([round, figure]) => {
    const below = base === null ? 1 : roundsOf(base)?.get(round)
    // Without a single answer there is no pace to be a multiple of.
    if (below === undefined || below === 0) return []
    return base !== null && figure === 0 ? [] : [figure / below]
  })
}

function verdictOf(change: Change, { better }: Measure, threshold: number): Verdict {
  const { mean, interval } = change
  const { low, high } = interval
  // 10 % slower is 10 % more time for a request: of rates, it is the inverse that counts.
  const cost =
    better === 'lower' ? { mean, low, high } : { mean: 1 / mean, low: 1 / high, high: 1 / low }
  if (cost.low > 1 && cost.mean >= 1 + threshold) return 'worse'
  if (cost.high < 1 && 1 / cost.mean >= 1 + threshold) return 'better'
  return cost.high < 1 + threshold ? 'same' : 'unclear'
}
