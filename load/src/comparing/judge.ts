import { DISTURBED } from '@onetrip/stack/measure/machine-cpu.ts'
import type { Experiment } from '../experiment/experiment.ts'
import { figure, percent } from '../experiment/figures.ts'
import { IO_THREADS, type Result } from '../experiment/result.ts'
import type { Row, Rows } from '../experiment/rows.ts'
import type { Facts, Metric } from '../experiment/shape.ts'
import { type Change, changeBetween } from '../experiment/statistics.ts'
import { commitOf } from '../reporting/part.ts'

/** In what two results differ besides their figures, each as `what: before, now after`. */
export interface Differences {
  /** In what was sent to what: then the figures are of different things, and cannot be compared. */
  load: string[]
  /** In the machine: then CPU times are not judged. */
  machine: string[]
  /**
   * In what other programs took of it: then only counts are judged. Beside busy programs a request costs
   * more CPU time (caches, the other half of the core), and the cheap variants lose more than the dear ones.
   */
  disturbance: string[]
  /** In software and code, which may be why something changed. */
  software: string[]
}

export function differencesOf(experiment: Experiment, before: Result, after: Result): Differences {
  const differ = (factsOf: (result: Result) => Facts) =>
    differencesBetween(factsOf(before), factsOf(after))
  // A stack that runs already does not tell everything; and where I/O threads differ, cases say how.
  const isList = ({ load }: Result) => typeof load[IO_THREADS] === 'string'
  const known = Object.keys(before.load)
    .filter((name) => before.load[name] && after.load[name])
    .filter((name) => name !== IO_THREADS || !(isList(before) || isList(after)))
  return {
    load: [
      ...differ(({ options }) => loadOptions(experiment, options)),
      ...differ(({ load }) => Object.fromEntries(known.map((name) => [name, load[name] ?? null]))),
    ],
    machine: differ(({ machine: { cpu, cores } }) => ({ processor: cpu, cores })),
    disturbance:
      Math.abs((after.elsewhere ?? 0) - (before.elsewhere ?? 0)) < DISTURBED
        ? []
        : differ(({ elsewhere }) => ({ 'CPU time that went elsewhere': percent(elsewhere ?? 0) })),
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

/** A case that two results have. */
type Pair = Readonly<Record<'old' | 'now', Row>>

/** The same case in two results, in the order of the newer one. */
export function pairsOf(before: Rows, after: Rows): Pair[] {
  return after.all.flatMap((now) => {
    const old = before.find(now.case)
    return old ? [{ old, now }] : []
  })
}

/** Rates that differ by a larger factor are another load. */
const SAME_RATE = 1.1

/** In what a pair differs that was asked for and is no factor; null where that is nearly the same. */
export function rateText({ old, now }: Pair): string | null {
  const given = now.shape.metrics.find(({ kind }) => kind === 'given')
  const [before, after] = [old, now].map((row) => given && row.median(given.name))
  if (!before || !after || Math.max(after / before, before / after) < SAME_RATE) return null
  return `${figure(before)}, now ${figure(after)}`
}

/** A metric of a case, before and after. */
export interface Comparison {
  /** Of the newer result. */
  row: Row
  metric: Metric
  /** The values are multiples of this row's in the same round; undefined where they stand by themselves. */
  reference: Row | undefined
  /** In each round. */
  old: number[]
  now: number[]
  change: Change
  /**
   * `better` and `worse`: by the tolerance or more, and beyond noise. `=`: it did not get worse by as much
   * as the tolerance, beyond noise. `?`: the rounds scatter too much.
   */
  verdict: 'better' | 'worse' | '=' | '?'
}

/**
 * Compares two results, case by case, as far as they are comparable. The intervals are those of 99 %; with
 * more than a dozen figures they are wider (Bonferroni's correction).
 *
 * @param tolerance a smaller change does not count: 0.1 for 10 %.
 * @returns also the confidence of the intervals.
 */
export function judge(
  before: Rows,
  after: Rows,
  differences: Differences,
  tolerance: number,
): { comparisons: Comparison[]; confidence: number } {
  const comparable = pairsOf(before, after)
    .filter((pair) => rateText(pair) === null)
    .flatMap((pair) => comparableOf(pair, before, after, differences))
  const confidence = 1 - (0.01 * 12) / Math.max(12, comparable.length)
  const comparisons = comparable.map((one): Comparison => {
    const least = one.metric.least ?? Number.MIN_VALUE
    const atLeast = (value: number) => (one.reference ? value : Math.max(least, value))
    const change = changeBetween(one.old.map(atLeast), one.now.map(atLeast), confidence)
    return { ...one, change, verdict: verdictOf(change, one.metric, tolerance) }
  })
  return { comparisons, confidence }
}

/**
 * The metrics of a case that say something. What depends on the pace of the machine is taken as a multiple
 * of the case's baseline in the same round, where both results have one.
 */
function comparableOf(
  { old, now }: Pair,
  before: Rows,
  after: Rows,
  { machine, disturbance }: Differences,
): Omit<Comparison, 'change' | 'verdict'>[] {
  const base = baselineOf(now, before, after)
  const rows = [old, now, ...(base ? [base.old, base.now] : [])]
  const hasPace = base?.now !== now && !rows.some((row) => row.hasDoubtfulRate)
  return now.shape.metrics
    .filter(({ kind, better }) => {
      if (!better || (kind !== 'count' && disturbance.length > 0)) return false
      return kind === 'pace' ? hasPace : kind !== 'cpu' || machine.length === 0
    })
    .map((metric) => {
      const by = metric.kind === 'pace' ? base : null
      // Without a single answer there is no pace to be a multiple of.
      const values = (row: Row, other: Row | undefined) =>
        other
          ? row.ratios(metric.name, other).filter((ratio) => ratio > 0)
          : row.values(metric.name)
      const [then, today] = [values(old, by?.old), values(now, by?.now)]
      return { row: now, metric, reference: by?.now, old: then, now: today }
    })
    .filter((one) => one.old.length >= 2 && one.now.length >= 2)
}

/** The baseline of a row in both results; null where no other case has it as well. */
function baselineOf(row: Row, before: Rows, after: Rows): Pair | null {
  const now = row.baseline(after)
  const old = now && before.find(now.case)
  const isShared = after.all.some((other) => other !== now && other.baseline(after) === now)
  return old && isShared ? { old, now } : null
}

function verdictOf(
  { mean, interval }: Change,
  { better }: Metric,
  tolerance: number,
): Comparison['verdict'] {
  // 10 % slower is 10 % more time for a request: of rates, it is the inverse that counts.
  const cost =
    better === 'lower'
      ? { mean, ...interval }
      : { mean: 1 / mean, low: 1 / interval.high, high: 1 / interval.low }
  if (cost.low > 1 && cost.mean >= 1 + tolerance) return 'worse'
  if (cost.high < 1 && 1 / cost.mean >= 1 + tolerance) return 'better'
  return cost.high < 1 + tolerance ? '=' : '?'
}
