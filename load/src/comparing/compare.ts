import { styleText } from 'node:util'
import { percentage } from '@onetrip/stack/parsers.ts'
import { Problem } from '@onetrip/stack/problem.ts'
import { print } from '@onetrip/stack/terminal.ts'
import { Command, Option } from 'commander'
import type { Experiment, RoundOptions } from '../experiment/experiment.ts'
import { counted, errorKinds, figure, percent } from '../experiment/figures.ts'
import type { Result } from '../experiment/result.ts'
import { Rows } from '../experiment/rows.ts'
import { summarize } from '../experiment/statistics.ts'
import { readResults } from '../reporting/files.ts'
import { tableText } from '../reporting/terminal.ts'
import {
  type Comparison,
  type Differences,
  differencesBetween,
  differencesOf,
  judge,
  loadOptions,
  pairsOf,
  rateText,
} from './judge.ts'

/** Exit code of a comparison that found something worse. */
export const REGRESSION = 4

/** A result, and what to call it. */
export interface NamedResult {
  readonly name: string
  readonly result: Result
}

export const thresholdOption = (): Option =>
  new Option('--threshold <percent>', 'how much worse is a regression, in a comparison')
    .argParser(percentage)
    .default(10)

/** `npm run load -- compare OLD NEW`. */
export function compareCommand(): Command {
  const command = new Command('compare')
    .description('say what got better or worse between two results')
    .argument('<old>', 'a file that --json wrote, or a folder of all')
    .argument('<new>', 'a newer one')
    .addOption(thresholdOption())
    .addHelpText(
      'after',
      `
Two results of the same experiment are compared case by case. A change counts when it is beyond noise (its
99 % interval, from the rounds of both, leaves out "no change"; with more than a dozen figures the intervals
are wider) and larger than the threshold. Judged are:
  - rates and latencies as multiples of those of a reference (naive, where there is one) in the same
    round, since two hours of a machine differ by more than two rounds;
  - CPU time per request or command, unless the machine is another one;
  - counts: round trips, commands, connections, system calls.
With another load (connections, workload, generator …) nothing is judged. Both need two rounds or more:
--quick of most experiments has one, so give --rounds 3, too. docs/statistics.md says more.

Exit codes: 0 nothing got worse; 4 something did; 1 the two cannot be compared.

Examples:
  npm run load -- compare main.json mine.json
  npm run load -- compare load/results mine --threshold 5
  npm run load -- http --quick --compare main.json`,
    )
  return command.action(async (old: string, newer: string) => {
    const { threshold } = command.opts<{ threshold: number }>()
    if (await compareAll(old, newer, threshold)) process.exitCode = REGRESSION
  })
}

/** @throws Problem when nothing got worse, but some of them could not be compared. */
async function compareAll(old: string, newer: string, threshold: number): Promise<boolean> {
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
      isWorse = printComparison(now.experiment, then, now, threshold) || isWorse
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
export function requireComparable(
  experiment: Experiment,
  { name, result }: NamedResult,
  options: object & RoundOptions,
): void {
  if (options.rounds < 2) {
    throw new Problem('--compare needs --rounds 2 or more, to tell a change from noise.')
  }
  requireRounds(name, Rows.of(experiment, result.samples))
  const differences = differencesBetween(
    loadOptions(experiment, result.options),
    loadOptions(experiment, { ...options }),
  )
  if (differences.length > 0) {
    throw new Problem(
      [`${name} was measured with another load. Give the same options:`, ...differences].join(
        '\n  ',
      ),
    )
  }
}

function requireRounds(name: string, { rounds }: Rows): void {
  if (rounds >= 2) return
  throw new Problem(`${name} has one round, which shows no variation. Measure it with --rounds 5.`)
}

/**
 * Prints what got better or worse between two results of an experiment.
 *
 * @param thresholdPercent a smaller change does not count.
 * @returns whether something got worse.
 * @throws Problem when they cannot be compared, or have nothing in common.
 */
export function printComparison(
  experiment: Experiment,
  before: NamedResult,
  after: NamedResult,
  thresholdPercent: number,
): boolean {
  const old = Rows.of(experiment, before.result.samples)
  const now = Rows.of(experiment, after.result.samples)
  requireRounds(before.name, old)
  requireRounds(after.name, now)
  const pairs = pairsOf(old, now)
  if (pairs.length === 0)
    throw new Problem(`${before.name} and ${after.name} have no case in common.`)
  const differences = differencesOf(experiment, before.result, after.result)
  const threshold = thresholdPercent / 100
  const { comparisons, confidence } = judge(old, now, differences, threshold)
  const onlyIn = (rows: Rows, others: Rows) =>
    rows.all.filter((row) => !others.find(row.case)).map((row) => rows.nameOf(row))
  const rates = pairs.flatMap((pair) => {
    const text = rateText(pair)
    return text === null ? [] : `${now.nameOf(pair.now)}: ${text}`
  })
  const failing = pairs
    .filter((pair) => errorKinds(pair.now.errors) !== '0' && errorKinds(pair.old.errors) === '0')
    .map((pair) => `${now.nameOf(pair.now)}: ${errorKinds(pair.now.errors)}`)
  const dates = [before, after].map(({ result }) => result.date.slice(0, 16).replace('T', ' '))
  print(
    styleText(
      'bold',
      `${experiment.name}: ${before.name} (${dates[0]} UTC), now ${after.name} (${dates[1]} UTC)`,
    ),
  )
  for (const [heading, entries] of [
    ...textsOf(differences),
    ['Other rates, so nothing is judged at these', rates],
    [`Only in ${before.name}`, onlyIn(old, now)],
    [`Only in ${after.name}`, onlyIn(now, old)],
    ['Errors where there were none', failing],
  ] as const) {
    if (entries.length > 0) print([`${heading}:`, ...entries].join('\n  '))
  }
  if (differences.load.length > 0) {
    throw new Problem(`${before.name} was measured with another load (see above).`)
  }
  const judged = comparisons.filter(({ verdict }) => verdict !== 'shown')
  if (judged.length === 0) {
    throw new Problem('Nothing can be judged: the machines or the rates differ (see above).')
  }
  print(`\n${comparisonTable(comparisons, now, confidence)}\n`)
  print(summaryText(judged, threshold))
  return failing.length > 0 || judged.some(({ verdict }) => verdict === 'worse')
}

const textsOf = (differences: Differences) =>
  [
    ['Another load, so nothing is judged', differences.load],
    ['Another machine, so CPU time is not judged', differences.machine],
    ['One more disturbed than the other, so only counts are judged', differences.disturbance],
    ['Measured for longer or shorter', differences.extent],
    ['Other software, which may be why', differences.software],
  ] as const

/** Nobody reads longer tables: then they have changes only. */
const MAX_ROWS = 150

function comparisonTable(all: readonly Comparison[], rows: Rows, confidence: number): string {
  const shown = all.filter(({ verdict }) => all.length <= MAX_ROWS || /better|worse/.test(verdict))
  const interval = `${Number((confidence * 100).toFixed(2))} % interval`
  return tableText({
    caption: '',
    head: ['case', 'metric', 'then', 'now', 'change', interval, 'verdict'],
    rows: shown.map(({ row, metric, reference, old, now, change, verdict }, index) => [
      shown[index - 1]?.row === row ? '' : rows.nameOf(row),
      reference === null ? metric.label : `${metric.label} ÷ ${reference.subject}'s`,
      figure(summarize(old).median),
      figure(summarize(now).median),
      signed(change.mean),
      `${signed(change.interval.low)} to ${signed(change.interval.high)}`,
      marks[verdict],
    ]),
    texts: [0, 1, 6],
  })
}

const marks = {
  better: styleText('bold', 'better'),
  worse: styleText(['bold', 'red'], 'worse'),
  same: '=',
  unclear: '?',
  shown: '',
}

/** A factor as a change: 1.05 is `+5.0 %`. The interval of two rounds can be anything. */
function signed(factor: number): string {
  if (factor > 1_000) return '> × 1,000'
  if (factor >= 11) return `× ${figure(factor)}`
  return `${factor < 1 ? '-' : '+'}${Math.abs((factor - 1) * 100).toFixed(1)} %`
}

function summaryText(judged: readonly Comparison[], threshold: number): string {
  const count = (wanted: string) => judged.filter(({ verdict }) => verdict === wanted).length
  const [worse, better, unclear] = [count('worse'), count('better'), count('unclear')]
  const references = new Set(judged.flatMap(({ reference }) => reference?.subject ?? []))
  return [
    `Of ${counted(judged.length, 'judged figure')}, ${worse} got worse and ${better} better by ${percent(threshold)} or more, beyond noise.`,
    unclear > 0 &&
      `? In ${unclear} of them, ${percent(threshold)} worse could hide behind the noise: take more rounds, or a quieter machine.`,
    references.size > 0 &&
      `Rates and latencies of two hours differ by themselves: they are judged as multiples of ${[...references].join("'s, or ")}'s in the same round.`,
  ]
    .filter(Boolean)
    .join('\n')
}
