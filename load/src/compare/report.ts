import { styleText } from 'node:util'
import { DISTURBED } from '../measure/machine-cpu.ts'
import { counted, figure, percent, renderTable } from '../table.ts'
import type { Differences } from './circumstances.ts'
import type { Comparable } from './comparable.ts'
import type { Comparison, Judgement } from './judge.ts'

/** What is compared with what, and in what they differ besides. */
export function comparisonHeader(
  before: Comparable,
  after: Comparable,
  name: string,
  differences: Differences,
): string {
  const title = styleText('bold', `${after.part}, compared with ${name}`)
  const lines = [`${title} (${described(before)}; now ${described(after)})`]
  const list = (title: string, entries: readonly string[]) => {
    if (entries.length > 0) lines.push(title, ...entries.map((entry) => `  ${entry}`))
  }
  list('Not the same load, so nothing is judged:', differences.load)
  list('Rates that are not the same, so nothing is judged at these:', differences.rates)
  list('Another machine, so CPU time is not judged:', differences.machine)
  list('One more disturbed than the other, so only counts are judged:', differences.disturbance)
  list('Measured for longer or shorter:', differences.extent)
  list('Other software, which may be why:', differences.software)
  for (const [result, when] of [
    [before, 'then'],
    [after, 'now'],
  ] as const) {
    if (result.elsewhere.most < DISTURBED) continue
    lines.push(`Other programs, or other guests of the host, had much of the CPU ${when}.`)
  }
  return lines.join('\n')
}

function described({ date, rounds }: Comparable): string {
  return `${date.slice(0, 16).replace('T', ' ')} UTC, ${counted(rounds, 'round')}`
}

const marks = { better: 'better', worse: 'worse', same: '=', unclear: '?', told: '' }

/** More lines than this are not read; of more, only those of changes are shown. */
const MOST_ROWS = 150

const isChange = ({ verdict }: Comparison) => verdict === 'better' || verdict === 'worse'

/** A line for each figure of each variant, or of those that changed; empty when that is none. */
export function comparisonTable({ comparisons, confidence }: Judgement): string {
  const shown = comparisons.length > MOST_ROWS ? comparisons.filter(isChange) : comparisons
  if (shown.length === 0) return ''
  const width = Math.max(...shown.map((row) => subject(row).length))
  const rows = shown.map((row, index) => {
    const { before, after, change, verdict } = row
    const previous = shown[index - 1]
    const name = previous && subject(previous) === subject(row) ? '' : subject(row)
    return [
      `${name.padEnd(width)}  ${nameOf(row)}`,
      figure(before),
      figure(after),
      signed(change.mean),
      `${signed(change.interval.low)} to ${signed(change.interval.high)}`,
      marks[verdict],
    ]
  })
  const interval = `${Number((confidence * 100).toFixed(2))} % interval`
  return renderTable({ head: ['', 'then', 'now', 'change', interval, ''], rows })
}

/** `batch`, or `594 requests/s, batch`. */
function subject({ row: { where, variant } }: Comparison): string {
  return where === '' ? variant : `${where}, ${variant}`
}

function nameOf({ measure, reference }: Comparison): string {
  return reference === null ? measure.name : `${measure.name} ÷ ${reference}'s`
}

/** What two rounds give can be anything. */
const MOST = 1_000

/** A factor as a change: 1.05 is `+5.0 %`. */
function signed(factor: number): string {
  const change = (factor - 1) * 100
  if (factor > MOST) return `> × ${figure(MOST)}`
  if (change >= 1_000) return `× ${figure(factor)}`
  return `${change < 0 ? '-' : '+'}${Math.abs(change).toFixed(1)} %`
}

/** The result in sentences. */
export function verdicts({ comparisons }: Judgement, threshold: number): string {
  const judged = comparisons.filter(({ verdict }) => verdict !== 'told')
  const lines = judged.filter(isChange).map((row) => {
    const { low, high } = row.change.interval
    const text =
      `${subject(row)}: ${nameOf(row)} is ${row.verdict}: ${signed(row.change.mean)} ` +
      `(${signed(low)} to ${signed(high)}).`
    return styleText(row.verdict === 'worse' ? ['bold', 'red'] : ['bold'], text)
  })
  if (judged.length > 0 && lines.length === 0) {
    const judgedOnes = counted(judged.length, 'figure')
    lines.push(
      `Of ${judgedOnes} that are judged, none changed by ${percent(threshold)} or more beyond noise.`,
    )
  }
  const unclear = judged.filter(({ verdict }) => verdict === 'unclear').length
  if (unclear > 0) {
    lines.push(
      `? In ${unclear} of ${counted(judged.length, 'figure')}, ${percent(threshold)} worse could hide behind the noise: take more rounds, or a quieter machine.`,
    )
  }
  const references = new Set(judged.flatMap(({ reference }) => reference ?? []))
  if (references.size > 0) {
    lines.push(
      `Rates and latencies of two hours differ by themselves: they are judged as multiples of ${[...references].join("'s, or ")}'s in the same round.`,
    )
  }
  return lines.join('\n')
}
