import { DISTURBED } from '@onetrip/stack/measure/machine-cpu.ts'
import type { Experiment } from '../experiment/experiment.ts'
import { figure, percent } from '../experiment/figures.ts'
import { IO_THREADS, type Result } from '../experiment/result.ts'
import type { Row, Rows } from '../experiment/rows.ts'
import type { Facts, Metric } from '../experiment/shape.ts'
import { type Change, changeBetween } from '../experiment/statistics.ts'
import { commitOf } from '../reporting/part.ts'

/** Differences in the conditions of two results, each as `name: before, now after`. */
export interface Differences {
  /** Results with different loads cannot be compared. */
  load: string[]
  /** On different machines, CPU times are not compared. */
  machine: string[]
  /**
   * CPU time used by other programs. If it differs, only counts are compared: other programs increase the CPU time
   * of a request (shared caches and hyper-threads), and that of cheap requests most.
   */
  disturbance: string[]
  /** Versions and commit: possible causes of a change. */
  software: string[]
}

export function differencesOf(experiment: Experiment, before: Result, after: Result): Differences {
  const differ = (factsOf: (result: Result) => Facts) =>
    differencesBetween(factsOf(before), factsOf(after))
  // A running stack does not report every fact. A list of I/O threads is one of the factors.
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
        : differ(({ elsewhere }) => ({ 'CPU time of other programs': percent(elsewhere ?? 0) })),
    software: differ((result) => ({
      ...result.software,
      Node: result.machine.node,
      kernel: result.machine.kernel,
      commit: commitOf(result),
    })),
  }
}

/** The options in `loadOptions`, as text. */
export function loadOptions(experiment: Experiment, options: Result['options']): Facts {
  return Object.fromEntries(
    experiment.loadOptions.map((name) => [name, String(options[name] ?? 'none')]),
  )
}

/** The facts that differ, as `name: before, now after`. */
export function differencesBetween(before: Facts, after: Facts): string[] {
  const textOf = (facts: Facts, name: string) => String(facts[name] ?? 'none')
  return Object.keys({ ...before, ...after })
    .filter((name) => textOf(before, name) !== textOf(after, name))
    .map((name) => `${name}: ${textOf(before, name)}, now ${textOf(after, name)}`)
}

/** The rows of the same case in two results. */
type Pair = Readonly<Record<'old' | 'now', Row>>

/** The cases that both results have, in the order of the newer one. */
export function pairsOf(before: Rows, after: Rows): Pair[] {
  return after.all.flatMap((now) => {
    const old = before.find(now.case)
    return old ? [{ old, now }] : []
  })
}

/** Given rates that differ by this factor or more are different loads. */
const SAME_RATE = 1.1

/** The `given` metrics of a pair, `100, now 120`; null if they are nearly equal. */
export function rateText({ old, now }: Pair): string | null {
  const given = now.shape.metrics.find(({ kind }) => kind === 'given')
  const [before, after] = [old, now].map((row) => given && row.median(given.name))
  if (!before || !after || Math.max(after / before, before / after) < SAME_RATE) return null
  return `${figure(before)}, now ${figure(after)}`
}

/** The comparison of one metric of one case. */
export interface Comparison {
  /** Of the newer result. */
  row: Row
  metric: Metric
  /** If given, the values are ratios to this row in the same round. */
  reference: Row | undefined
  /** One value per round. */
  old: number[]
  now: number[]
  change: Change
  /**
   * `better` and `worse`: a change of at least the tolerance, beyond noise. `=`: certainly not worse by the
   * tolerance. `?`: the rounds vary too much to decide.
   */
  verdict: 'better' | 'worse' | '=' | '?'
}

/**
 * Compares all comparable metrics of two results. The confidence of the intervals is 99 %, or more with more than
 * 12 comparisons (Bonferroni correction).
 *
 * @param tolerance the smallest change that counts: 0.1 for 10 %.
 * @returns the comparisons, and the confidence of their intervals.
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
 * The comparable metrics of a case. Metrics of the kind `pace` are ratios to the baseline in the same round. A case
 * without another baseline has none.
 */
function comparableOf(
  { old, now }: Pair,
  before: Rows,
  after: Rows,
  { machine, disturbance }: Differences,
): Omit<Comparison, 'change' | 'verdict'>[] {
  const base = baselineOf({ old, now }, before, after)
  const rows = [old, now, ...(base ? [base.old, base.now] : [])]
  const hasPace = base?.now !== now && !rows.some((row) => row.hasDoubtfulRate)
  return now.shape.metrics
    .filter(({ kind, better }) => {
      if (!better || (kind !== 'count' && disturbance.length > 0)) return false
      return kind === 'pace' ? hasPace : kind !== 'cpu' || machine.length === 0
    })
    .map((metric) => {
      const by = metric.kind === 'pace' ? base : null
      // A run without any answer has no ratio.
      const values = (row: Row, other: Row | undefined) =>
        other
          ? row.ratios(metric.name, other).filter((ratio) => ratio > 0)
          : row.values(metric.name)
      const [then, today] = [values(old, by?.old), values(now, by?.now)]
      return { row: now, metric, reference: by?.now, old: then, now: today }
    })
    .filter((one) => one.old.length >= 2 && one.now.length >= 2)
}

/**
 * The baseline of a pair, among the cases that both results have; the pair itself if there is no other. Null if rates
 * are compared directly: the experiment has no baseline for the case, or neither result has another one.
 */
function baselineOf(pair: Pair, before: Rows, after: Rows): Pair | null {
  const { shape, case: one } = pair.now
  const shared = after.filter((row) => before.find(row.case) !== undefined)
  const differs = shape.baseline?.(
    one,
    shared.all.map((row) => row.case),
  )
  if (!differs) return null
  const place = Object.fromEntries(Object.entries(one).filter(([name]) => !(name in differs)))
  if ([before, after].every((rows) => rows.where(place).all.length === 1)) return null
  const now = shared.find({ ...one, ...differs })
  const old = now && before.find(now.case)
  return old ? { old, now } : pair
}

function verdictOf(
  { mean, interval }: Change,
  { better }: Metric,
  tolerance: number,
): Comparison['verdict'] {
  // 10 % worse means 10 % more time per request, so rates are inverted.
  const cost =
    better === 'lower'
      ? { mean, ...interval }
      : { mean: 1 / mean, low: 1 / interval.high, high: 1 / interval.low }
  if (cost.low > 1 && cost.mean >= 1 + tolerance) return 'worse'
  if (cost.high < 1 && 1 / cost.mean >= 1 + tolerance) return 'better'
  return cost.high < 1 + tolerance ? '=' : '?'
}
