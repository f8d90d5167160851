import { styleText } from 'node:util'
import { percentage } from '@onetrip/stack/parsers.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { print } from '@onetrip/stack/terminal.ts'
import { Command, Option } from 'commander'
import { geometricMean } from 'simple-statistics'
import type { RoundOptions } from '../experiment/experiment.ts'
import { counted, errorKinds, figure, percent } from '../experiment/figures.ts'
import { Rows } from '../experiment/rows.ts'
import { readResults, type SavedResult } from '../reporting/files.ts'
import { tableText } from '../reporting/terminal.ts'
import {
  type Comparison,
  differencesBetween,
  differencesOf,
  judge,
  loadOptions,
  pairsOf,
  rateText,
} from './judge.ts'

/** Exit code when a comparison found a regression, or a threshold was crossed. */
export const REGRESSION = 4

export const toleranceOption = (): Option =>
  new Option('--tolerance <percent>', 'the smallest change that counts as a regression')
    .argParser(percentage)
    .default(10)

/** `npm run load -- compare OLD NEW`. */
export function compareCommand(): Command {
  const command = new Command('compare')
    .description('report regressions and improvements between two results')
    .argument('<old>', 'a result file written by --json, or a folder of result files')
    .argument('<new>', 'the newer file or folder')
    .addOption(toleranceOption())
    .addHelpText(
      'after',
      `
A change counts if it is beyond noise (its 99 % interval, computed from the rounds of both results, excludes "no
change") and at least as large as the tolerance. For each case, these metrics are compared:
  - rates and latencies, as ratios to a baseline (usually naive) in the same round, because the speed of a
    machine varies from hour to hour;
  - CPU time per request or command, if both results are from the same kind of machine;
  - counts: round trips, commands, connections, system calls.
Both results need the same load and at least two rounds (--quick --rounds 3). Details: docs/statistics.md.

Exit codes: 0 no regression; 4 regression; 1 the results cannot be compared.

Examples:
  npm run load -- compare main.json mine.json
  npm run load -- compare load/results mine --tolerance 5
  npm run load -- http --quick --compare main.json`,
    )
  return command.action(async (old: string, newer: string) => {
    const { tolerance } = command.opts<{ tolerance: number }>()
    if (await compareAll(old, newer, tolerance)) process.exitCode = REGRESSION
  })
}

/**
 * @returns whether there is a regression.
 * @throws Problem when there is none, but some results could not be compared.
 */
async function compareAll(old: string, newer: string, tolerance: number): Promise<boolean> {
  const [before, after] = [await readResults(old), await readResults(newer)]
  const pairs = after.flatMap((now) => {
    const alike = before.filter(({ experiment }) => experiment === now.experiment)
    const then = alike.find(({ name }) => name === now.name) ?? alike[0]
    return then ? [{ then, now }] : []
  })
  if (pairs.length === 0) {
    throw new Problem(`${old} and ${newer} have no results of the same experiment.`)
  }
  const problems: string[] = []
  let isWorse = false
  for (const { then, now } of pairs) {
    try {
      isWorse = printComparison(then, now, tolerance) || isWorse
      print()
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      problems.push(`${now.experiment.name}: ${error.message}`)
    }
  }
  if (problems.length > 0 && !isWorse) throw new Problem(problems.join('\n'))
  print(problems.join('\n'))
  return isWorse
}

/**
 * Checks before a measurement that its result can be compared with an older one.
 *
 * @throws Problem when it cannot.
 */
export function requireComparable(before: SavedResult, options: object & RoundOptions): void {
  if (options.rounds < 2) {
    throw new Problem('--compare needs --rounds 2 or more, to distinguish a change from noise.')
  }
  rowsOf(before)
  const { name, experiment, result } = before
  const [old, now] = [result.options, { ...options }].map((all) => loadOptions(experiment, all))
  const differences = differencesBetween(old ?? {}, now ?? {})
  if (differences.length === 0) return
  const problem = `${name} was measured with a different load. Give the same options:`
  throw new Problem([problem, ...differences].join('\n  '))
}

function rowsOf({ name, experiment, result }: SavedResult): Rows {
  const rows = Rows.of(experiment, result.samples)
  if (rows.rounds >= 2) return rows
  throw new Problem(
    `${name} has only one round, but a comparison needs two. Measure it again with --rounds 5.`,
  )
}

/**
 * Prints the regressions and improvements between two results of an experiment.
 *
 * @param tolerancePercent the smallest change that counts.
 * @returns whether there is a regression.
 * @throws Problem when the results cannot be compared.
 */
export function printComparison(
  before: SavedResult,
  after: SavedResult,
  tolerancePercent: number,
): boolean {
  const { experiment } = after
  const [old, now] = [rowsOf(before), rowsOf(after)]
  const pairs = pairsOf(old, now)
  if (pairs.length === 0)
    throw new Problem(`${before.name} and ${after.name} have no case in common.`)
  const differences = differencesOf(experiment, before.result, after.result)
  const onlyIn = (rows: Rows, others: Rows) =>
    rows.all.filter((row) => !others.find(row.case)).map((row) => rows.nameOf(row))
  const rates = pairs.flatMap((pair) => {
    const text = rateText(pair)
    return text === null ? [] : `${now.nameOf(pair.now)}: ${text}`
  })
  const failing = pairs
    .filter((pair) => errorKinds(pair.now.errors) !== '0' && errorKinds(pair.old.errors) === '0')
    .map((pair) => `${now.nameOf(pair.now)}: ${errorKinds(pair.now.errors)}`)
  const nameOf = ({ name, result }: SavedResult) => `${name} (${result.date.slice(0, 16)})`
  print(styleText('bold', `${experiment.name}: ${nameOf(before)}, now ${nameOf(after)}`))
  printList('Different load', differences.load)
  printList('Different rates (these cases are not compared)', rates)
  printList('Different machine (CPU time is not compared)', differences.machine)
  printList('Different load by other programs (only counts are compared)', differences.disturbance)
  printList('Different software (a possible cause of changes)', differences.software)
  printList(`Only in ${before.name}`, onlyIn(old, now))
  printList(`Only in ${after.name}`, onlyIn(now, old))
  printList('New errors', failing)
  if (differences.load.length > 0) {
    throw new Problem(`${before.name} was measured with a different load (see above).`)
  }
  const tolerance = tolerancePercent / 100
  const { comparisons, confidence } = judge(old, now, differences, tolerance)
  if (comparisons.length === 0) {
    throw new Problem('No metric can be compared, because of the differences above.')
  }
  print(`\n${comparisonTable(comparisons, now, confidence)}\n`)
  print(summaryText(comparisons, tolerance))
  return failing.length > 0 || comparisons.some(({ verdict }) => verdict === 'worse')
}

function printList(heading: string, entries: readonly string[]): void {
  if (entries.length > 0) print([`${heading}:`, ...entries].join('\n  '))
}

function comparisonTable(all: readonly Comparison[], rows: Rows, confidence: number): string {
  const interval = `${Number((confidence * 100).toFixed(2))} % interval`
  return tableText({
    caption: '',
    head: ['case', 'metric', 'then', 'now', 'change', interval, 'verdict'],
    rows: all.map(({ row, metric, reference, old, now, change, verdict }, index) => [
      all[index - 1]?.row === row ? '' : rows.nameOf(row),
      reference ? `${metric.label} ÷ ${reference.subject}'s` : metric.label,
      figure(geometricMean(old)),
      figure(geometricMean(now)),
      signed(change.mean),
      `${signed(change.interval.low)} to ${signed(change.interval.high)}`,
      verdict,
    ]),
    texts: [0, 1, 6],
  })
}

/** A ratio as a change: 1.05 is `+5.0 %`. Intervals of two rounds can be extremely wide. */
function signed(factor: number): string {
  if (factor > 1_000) return '> × 1,000'
  if (factor >= 11) return `× ${figure(factor)}`
  return `${factor < 1 ? '-' : '+'}${Math.abs((factor - 1) * 100).toFixed(1)} %`
}

function summaryText(all: readonly Comparison[], tolerance: number): string {
  const count = (wanted: string) => all.filter(({ verdict }) => verdict === wanted).length
  const much = percent(tolerance)
  const summary = `Of ${counted(all.length, 'figure')}, ${count('worse')} got worse and ${count('better')} better by ${much} or more, beyond noise.`
  if (count('?') === 0) return summary
  return `${summary}\n? ${counted(count('?'), 'figure')} could be ${much} worse or more within the noise. Use more rounds or a less busy machine.`
}
