import { styleText } from 'node:util'
import { Problem } from '@onetrip/stack/problem.ts'
import { print } from '@onetrip/stack/terminal.ts'
import type { Experiment } from '../experiment/experiment.ts'
import { counted, errorKinds, figure, percent } from '../experiment/figures.ts'
import type { Result } from '../experiment/result.ts'
import { Rows } from '../experiment/rows.ts'
import { tableText } from '../reporting/terminal.ts'
import {
  type Differences,
  differ,
  differencesOf,
  loadFacts,
  type Pair,
  pairsOf,
} from './differences.ts'
import { type Comparison, type Judgement, judge } from './judge.ts'

/** Exit code of a comparison that found something worse. */
export const REGRESSION = 4

/** Differences of fewer percent than this are not worth an alarm: two runs of the same differ as much. */
export const THRESHOLD_PERCENT = 10

/** A result, and what to call it. */
export interface NamedResult {
  readonly name: string
  readonly result: Result
}

/**
 * Makes sure, before anything is measured, that it can be compared with an older result.
 *
 * @throws Problem when it cannot.
 */
export function requireComparable(
  experiment: Experiment,
  { name, result }: NamedResult,
  options: { rounds: number } & Readonly<Record<string, unknown>>,
): void {
  if (options.rounds < 2) {
    throw new Problem('--compare needs --rounds 2 or more, to tell a change from noise.')
  }
  requireRounds(name, Rows.of(experiment, result.samples))
  const differences = differ(loadFacts(experiment, result.options), loadFacts(experiment, options))
  if (differences.length === 0) return
  const lines = [
    `${name} was measured with another load:`,
    ...differences,
    'Give the same options.',
  ]
  throw new Problem(lines.join('\n  '))
}

function requireRounds(name: string, { rounds }: Rows): void {
  if (rounds >= 2) return
  throw new Problem(`${name} has one round, which shows no variation. Measure it with --rounds 5.`)
}

/**
 * Prints what got better or worse between two results of an experiment.
 *
 * @param thresholdPercent a smaller change is none.
 * @returns whether something got worse.
 * @throws Problem when they cannot be compared, or have nothing in common.
 */
export function printComparison(
  experiment: Experiment,
  before: NamedResult,
  after: NamedResult,
  thresholdPercent: number,
): boolean {
  const [old, now] = [before, after].map(({ result }) => Rows.of(experiment, result.samples))
  if (!old || !now) return false
  requireRounds(before.name, old)
  requireRounds(after.name, now)
  const pairs = pairsOf(old, now)
  if (pairs.length === 0) {
    const [has, wanted] = [old, now].map((rows) => namesIn(rows))
    throw new Problem(
      `${before.name} and ${after.name} have no case in common. The former has ${has}; the latter ${wanted}.`,
    )
  }
  const differences = differencesOf(experiment, [before.result, after.result], pairs)
  const threshold = thresholdPercent / 100
  const judgement = judge(old, now, differences, threshold)
  print(headerText(experiment, [before, after], [old, now], differences))
  const table = judgementText(judgement, now)
  print(table === '' ? '' : `\n${table}\n`)
  if (differences.load.length > 0) {
    throw new Problem(
      `${before.name} was measured with another load (see above): repeat it with the same options.`,
    )
  }
  if (judgement.comparisons.every(({ verdict }) => verdict === 'told')) {
    throw new Problem(
      `Nothing of ${before.name} can be judged: the machines or the rates differ (see above).`,
    )
  }
  const failing = newErrors(pairs, now)
  print([...failing, verdictText(judgement, now, threshold)].join('\n'))
  return failing.length > 0 || judgement.comparisons.some(({ verdict }) => verdict === 'worse')
}

const MAX_NAMES = 3

function namesIn(rows: Rows): string {
  const names = rows.all.slice(0, MAX_NAMES).map((row) => rows.nameOf(row))
  return [...names, ...(rows.all.length > MAX_NAMES ? ['…'] : [])].join('; ')
}

/** A sentence for each case in which requests failed, and did not before. */
function newErrors(pairs: readonly Pair[], rows: Rows): string[] {
  return pairs
    .filter(({ old, now }) => errorKinds(now.errors) !== '0' && errorKinds(old.errors) === '0')
    .map(({ now }) =>
      styleText(
        ['bold', 'red'],
        `${rows.nameOf(now)} has errors, and had none: ${errorKinds(now.errors)}.`,
      ),
    )
}

/** What is compared with what, and in what they differ besides. */
function headerText(
  { name }: Experiment,
  [before, after]: readonly [NamedResult, NamedResult],
  rows: readonly [Rows, Rows],
  differences: Differences,
): string {
  const told = ({ result: { date } }: NamedResult, { rounds }: Rows) =>
    `${date.slice(0, 16).replace('T', ' ')} UTC, ${counted(rounds, 'round')}`
  const title = styleText('bold', `${name}, compared with ${before.name}`)
  const lists: [title: string, entries: readonly string[]][] = [
    ['Not the same load, so nothing is judged:', differences.load],
    ['Rates that are not the same, so nothing is judged at these:', differences.rates],
    ['Another machine, so CPU time is not judged:', differences.machine],
    ['One more disturbed than the other, so only counts are judged:', differences.disturbance],
    ['Measured for longer or shorter:', differences.extent],
    ['Other software, which may be why:', differences.software],
    [`Only in ${before.name}:`, onlyIn(rows[0], rows[1])],
    [`Only in ${after.name}:`, onlyIn(rows[1], rows[0])],
  ]
  return [
    `${title} (${told(before, rows[0])}; now ${told(after, rows[1])})`,
    ...lists.flatMap(([heading, entries]) =>
      entries.length > 0 ? [heading, ...entries.map((entry) => `  ${entry}`)] : [],
    ),
  ].join('\n')
}

const onlyIn = (rows: Rows, others: Rows) =>
  rows.all.filter((row) => !others.find(row.case)).map((row) => rows.nameOf(row))

const marks = { better: 'better', worse: 'worse', same: '=', unclear: '?', told: '' }

/** More lines than this are not read; of more, only those of changes are shown. */
const MAX_ROWS = 150

const isChange = ({ verdict }: Comparison) => verdict === 'better' || verdict === 'worse'

/** A line for each metric of each case, or of those that changed; empty when that is none. */
function judgementText({ comparisons, confidence }: Judgement, rows: Rows): string {
  const shown = comparisons.length > MAX_ROWS ? comparisons.filter(isChange) : comparisons
  if (shown.length === 0) return ''
  const interval = `${Number((confidence * 100).toFixed(2))} % interval`
  return tableText({
    caption: '',
    head: ['case', 'metric', 'then', 'now', 'change', interval, 'verdict'],
    rows: shown.map((one, index) => {
      const { row, before, after, change, verdict } = one
      return [
        shown[index - 1]?.row === row ? '' : rows.nameOf(row),
        nameOf(one),
        figure(before),
        figure(after),
        signed(change.mean),
        `${signed(change.interval.low)} to ${signed(change.interval.high)}`,
        marks[verdict],
      ]
    }),
    texts: [0, 1, 6],
  })
}

function nameOf({ metric, reference }: Comparison): string {
  return reference === null ? metric.label : `${metric.label} ÷ ${reference.subject}'s`
}

/** What two rounds give can be anything. */
const MAX_FACTOR = 1_000

/** A factor as a change: 1.05 is `+5.0 %`. */
function signed(factor: number): string {
  const change = (factor - 1) * 100
  if (factor > MAX_FACTOR) return `> × ${figure(MAX_FACTOR)}`
  if (change >= 1_000) return `× ${figure(factor)}`
  return `${change < 0 ? '-' : '+'}${Math.abs(change).toFixed(1)} %`
}

/** The result in sentences. */
function verdictText({ comparisons }: Judgement, rows: Rows, threshold: number): string {
  const judged = comparisons.filter(({ verdict }) => verdict !== 'told')
  const lines = judged.filter(isChange).map((one) => {
    const { low, high } = one.change.interval
    const text = `${rows.nameOf(one.row)}: ${nameOf(one)} is ${one.verdict}: ${signed(one.change.mean)} (${signed(low)} to ${signed(high)}).`
    return styleText(one.verdict === 'worse' ? ['bold', 'red'] : ['bold'], text)
  })
  if (judged.length > 0 && lines.length === 0) {
    lines.push(
      `Of ${counted(judged.length, 'figure')} that are judged, none changed by ${percent(threshold)} or more beyond noise.`,
    )
  }
  const unclear = judged.filter(({ verdict }) => verdict === 'unclear').length
  if (unclear > 0) {
    lines.push(
      `? In ${unclear} of ${counted(judged.length, 'figure')}, ${percent(threshold)} worse could hide behind the noise: take more rounds, or a quieter machine.`,
    )
  }
  const references = new Set(judged.flatMap(({ reference }) => reference?.subject ?? []))
  if (references.size > 0) {
    lines.push(
      `Rates and latencies of two hours differ by themselves: they are judged as multiples of ${[...references].join("'s, or ")}'s in the same round.`,
    )
  }
  return lines.join('\n')
}
