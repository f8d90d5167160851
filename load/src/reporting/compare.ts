import { DISTURBED } from '@onetrip/stack/measure/machine-cpu.ts'
import { percentage } from '@onetrip/stack/parsers.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { print } from '@onetrip/stack/terminal.ts'
import { Command, Option } from 'commander'
import { geometricMean } from 'simple-statistics'
import { figure, percent } from '../rounds/figures.ts'
import type { Result } from '../rounds/result.ts'
import { type Row, Rows } from '../rounds/rows.ts'
import type { Metric } from '../rounds/shape.ts'
import { changeBetween } from '../rounds/statistics.ts'
import { readResult, type SavedResult } from './files.ts'
import { commitOf } from './part.ts'
import { tableText } from './terminal.ts'

/** Exit code when a comparison found a regression, or a run something wrong. */
const REGRESSION = 4

/** `npm run load -- compare OLD NEW`. */
export function compareCommand(): Command {
  const command = new Command('compare')
    .description('report regressions and improvements between two results')
    .argument('<old>', 'a result file written by --json')
    .argument('<new>', 'a newer result of the same experiment')
    .addOption(
      new Option('--tolerance <percent>', 'the smallest change that counts')
        .argParser(percentage)
        .default(10),
    )
    .addHelpText(
      'after',
      `
A change counts if its 99 % interval, computed from the rounds of both results, excludes "no change", and if it is
at least as large as the tolerance. Rates and latencies are compared as ratios to the baseline (usually naive) in
the same round, because the speed of a machine varies from hour to hour. Details: docs/method.md.

Exit codes: 0 no regression; 4 regression; 1 the results cannot be compared.

Examples:
  npm run load -- compare before.json after.json --tolerance 5`,
    )
  return command.action(async (old: string, newer: string) => {
    const { tolerance } = command.opts<{ tolerance: number }>()
    const comparison = compare(await readResult(old), await readResult(newer), tolerance / 100)
    const { differences, changes } = comparison
    print(['Different conditions:', ...differences, ''].join('\n  '))
    print(`${tableText(tableOf(changes))}\n`)
    if (changes.some(({ verdict }) => verdict === 'worse')) process.exitCode = REGRESSION
  })
}

/**
 * Compares the cases that both results have. The confidence of the intervals is 99 %, or more with more than 12
 * figures (Bonferroni's correction).
 *
 * @param tolerance the smallest change that counts: 0.1 for 10 %.
 * @throws Problem when the results have no figures that can be compared.
 */
export function compare(before: SavedResult, after: SavedResult, tolerance: number) {
  const { experiment } = after
  if (before.experiment !== experiment) throw new Problem('These are different experiments.')
  requireAlike(before.result, after.result)
  const all = [before, after].map(({ result }) => Rows.of(experiment, result.samples))
  const [old, now] = all.map((rows) =>
    rows.filter((row) => all.every((others) => others.find(row.case))),
  ) as [Rows, Rows]
  const metrics = experiment.metrics.filter(({ better }) => better)
  const pairs = now.all.flatMap((row) => metrics.map((metric) => ({ row, metric })))
  const figures = pairs.flatMap(({ row, metric }) => {
    const values = [old, now].map((rows) => valuesOf(rows.find(row.case), rows, metric))
    const [then = [], later = []] = values
    const isMeasured = values.every((list) => list.length > 1 && Math.min(...list) > 0)
    const isSmall = Math.max(...then, ...later) < SMALLEST
    return isMeasured && !isSmall ? [{ row, metric, old: then, now: later }] : []
  })
  if (figures.length === 0) {
    throw new Problem('The results have no figures of the same cases with two or more rounds.')
  }
  const confidence = 1 - (0.01 * 12) / Math.max(12, figures.length)
  const changes = figures.map(({ row, metric, ...values }) => {
    const change = changeBetween(values.old, values.now, confidence)
    const verdict = verdictOf(change, metric, tolerance)
    return { ...values, ...change, name: now.nameOf(row), metric: metric.label, verdict }
  })
  return { differences: differencesBetween(before.result, after.result), changes }
}

/** CPU time depends on the processor. Other programs increase that of cheap requests most. */
function requireAlike(before: Result, after: Result): void {
  const disturbance = Math.abs((before.elsewhere ?? 0) - (after.elsewhere ?? 0))
  if (before.machine.cpu === after.machine.cpu && disturbance < DISTURBED) return
  throw new Problem(
    'The results cannot be compared: the processors differ, or other programs were busy during one of them.',
  )
}

/** Ratios of smaller values (milliseconds, microseconds, counts) mean nothing. */
const SMALLEST = 0.05

/** The value of each round; rates and latencies as ratios to the baseline, which has none itself. */
function valuesOf(row: Row | undefined, rows: Rows, { name, kind }: Metric): number[] {
  if (!row) return []
  const base = row.baseline(rows)
  if (kind !== 'pace' || !base || rows.all.length === 1) return row.values(name)
  if (base === row || row.hasDoubtfulRate || base.hasDoubtfulRate) return []
  return row.ratios(name, base)
}

/**
 * `better` and `worse`: a change of at least the tolerance, beyond noise. `=`: certainly not worse by the tolerance.
 * `?`: the rounds vary too much to decide.
 */
function verdictOf(
  { mean, interval: { low, high } }: ReturnType<typeof changeBetween>,
  { better }: Metric,
  tolerance: number,
): 'better' | 'worse' | '=' | '?' {
  const [least, most] = [1 / (1 + tolerance), 1 + tolerance]
  const [isLess, isMore] = [high < 1 && mean <= least, low > 1 && mean >= most]
  if (isLess || isMore) return isMore === (better === 'higher') ? 'better' : 'worse'
  return (better === 'higher' ? low > least : high < most) ? '=' : '?'
}

/** Options, load, software and machine that differ, as `name: before, now after`. */
function differencesBetween(before: Result, after: Result): string[] {
  const [old, now] = [before, after].map(
    (result): Record<string, unknown> => ({
      ...result.options,
      ...result.load,
      ...result.software,
      ...result.machine,
      commit: commitOf(result),
      'CPU time of other programs': percent(result.elsewhere ?? 0),
    }),
  ) as [Record<string, unknown>, Record<string, unknown>]
  return Object.keys({ ...old, ...now })
    .filter((name) => String(old[name]) !== String(now[name]))
    .map((name) => `${name}: ${old[name]}, now ${now[name]}`)
}

function tableOf(changes: ReturnType<typeof compare>['changes']) {
  return {
    caption: '',
    head: ['case', 'metric', 'then', 'now', 'change', 'interval', 'verdict'],
    rows: changes.map(({ name, metric, old, now, mean, interval, verdict }) => [
      ...[name, metric, figure(geometricMean([...old])), figure(geometricMean([...now]))],
      `× ${figure(mean)}`,
      `${figure(interval.low)} to ${figure(interval.high)}`,
      verdict,
    ]),
    texts: [0, 1, 6],
  }
}
