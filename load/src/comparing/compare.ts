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

/** Exit code of a comparison that found something worse. */
export const REGRESSION = 4

export const toleranceOption = (): Option =>
  new Option('--tolerance <percent>', 'how much worse is a regression, in a comparison')
    .argParser(percentage)
    .default(10)

/** `npm run load -- compare OLD NEW`. */
export function compareCommand(): Command {
  const command = new Command('compare')
    .description('say what got better or worse between two results')
    .argument('<old>', 'a file that --json wrote, or a folder of all')
    .argument('<new>', 'a newer one')
    .addOption(toleranceOption())
    .addHelpText(
      'after',
      `
A change counts when it is beyond noise (its 99 % interval, from the rounds of both, leaves out "no change")
and larger than the tolerance. Judged are, case by case:
  - rates and latencies, as multiples of a reference (naive, where there is one) in the same round, since
    the machine differs from hour to hour;
  - CPU time per request or command, unless the machine is another one;
  - counts: round trips, commands, connections, system calls.
Both results need the same load and two rounds or more: --quick --rounds 3. docs/statistics.md says more.

Exit codes: 0 nothing got worse; 4 something did; 1 the two cannot be compared.

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

/** @throws Problem when nothing got worse, but some of them could not be compared. */
async function compareAll(old: string, newer: string, tolerance: number): Promise<boolean> {
  const [before, after] = [await readResults(old), await readResults(newer)]
  const pairs = after.flatMap((now) => {
    const alike = before.filter(({ experiment }) => experiment === now.experiment)
    const then = alike.find(({ name }) => name === now.name) ?? alike[0]
    return then ? [{ then, now }] : []
  })
  if (pairs.length === 0) throw new Problem(`${old} and ${newer} have no experiment in common.`)
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
 * Makes sure, before anything is measured, that it can be compared with an older result.
 *
 * @throws Problem when it cannot.
 */
export function requireComparable(before: SavedResult, options: object & RoundOptions): void {
  if (options.rounds < 2) {
    throw new Problem('--compare needs --rounds 2 or more, to tell a change from noise.')
  }
  rowsOf(before)
  const { name, experiment, result } = before
  const [old, now] = [result.options, { ...options }].map((all) => loadOptions(experiment, all))
  const differences = differencesBetween(old ?? {}, now ?? {})
  if (differences.length === 0) return
  const problem = `${name} was measured with another load. Give the same options:`
  throw new Problem([problem, ...differences].join('\n  '))
}

function rowsOf({ name, experiment, result }: SavedResult): Rows {
  const rows = Rows.of(experiment, result.samples)
  if (rows.rounds >= 2) return rows
  throw new Problem(`${name} has one round, which shows no variation. Measure it with --rounds 5.`)
}

/**
 * Prints what got better or worse between two results of an experiment.
 *
 * @param tolerancePercent a smaller change does not count.
 * @returns whether something got worse.
 * @throws Problem when they cannot be compared.
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
  printList('Another load', differences.load)
  printList('Other rates, so nothing is judged at these', rates)
  printList('Another machine, so CPU time is not judged', differences.machine)
  printList('More disturbed, so only counts are judged', differences.disturbance)
  printList('Other software, which may be why', differences.software)
  printList(`Only in ${before.name}`, onlyIn(old, now))
  printList(`Only in ${after.name}`, onlyIn(now, old))
  printList('Errors where there were none', failing)
  if (differences.load.length > 0) {
    throw new Problem(`${before.name} was measured with another load (see above).`)
  }
  const tolerance = tolerancePercent / 100
  const { comparisons, confidence } = judge(old, now, differences, tolerance)
  if (comparisons.length === 0) {
    throw new Problem('Nothing can be judged: the machines or the rates differ (see above).')
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

/** A factor as a change: 1.05 is `+5.0 %`. The interval of two rounds can be anything. */
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
  return `${summary}\n? In ${count('?')} of them, ${much} worse could hide behind the noise: take more rounds, or a quieter machine.`
}
