import { styleText } from 'node:util'
import type { HttpResult } from '../http/result.ts'
import { isDisturbed } from '../http/summary.ts'
import { counted, figure, percent, renderTable } from '../table.ts'
import type { Differences } from './circumstances.ts'
import { CONFIDENCE, type Comparison, referenceOf } from './judge.ts'

/** What is compared with what, and in what they differ besides. */
export function comparisonHeader(
  before: HttpResult,
  after: HttpResult,
  name: string,
  differences: Differences,
): string {
  const title = styleText('bold', `Compared with ${name}`)
  const lines = [`${title} (${described(before)}; now ${described(after)})`]
  const list = (title: string, entries: readonly string[]) => {
    if (entries.length > 0) lines.push(title, ...entries.map((entry) => `  ${entry}`))
  }
  list('Not the same load, so nothing is judged:', differences.load)
  list('Another machine, so CPU time is not judged:', differences.machine)
  list('One more disturbed than the other, so only counts are judged:', differences.disturbance)
  list('Measured for longer or shorter:', differences.extent)
  list('Other software, which may be why:', differences.software)
  for (const [result, when] of [
    [before, 'then'],
    [after, 'now'],
  ] as const) {
    if (!result.summaries.some(isDisturbed)) continue
    lines.push(`Other programs, or other guests of the host, had much of the CPU ${when}.`)
  }
  return lines.join('\n')
}

function described({ date, samples }: HttpResult): string {
  const rounds = new Set(samples.map(({ round }) => round)).size
  return `${date.slice(0, 16).replace('T', ' ')} UTC, ${counted(rounds, 'round')}`
}

const marks = { better: 'better', worse: 'worse', same: '=', unclear: '?', told: '' }

/** A line for each figure of each variant. */
export function comparisonTable(comparisons: readonly Comparison[]): string {
  const width = Math.max(...comparisons.map(({ variant }) => variant.length))
  const rows = comparisons.map((row, index) => {
    const { variant, before, after, change, verdict } = row
    const isFirst = variant !== comparisons[index - 1]?.variant
    return [
      `${(isFirst ? variant : '').padEnd(width)}  ${nameOf(row)}`,
      figure(before),
      figure(after),
      signed(change.mean),
      `${signed(change.interval.low)} to ${signed(change.interval.high)}`,
      marks[verdict],
    ]
  })
  const interval = `${(CONFIDENCE * 100).toFixed(0)} % interval`
  return renderTable({ head: ['', 'then', 'now', 'change', interval, ''], rows })
}

function nameOf({ measure, reference }: Comparison): string {
  return reference === null ? measure.name : `${measure.name} ÷ ${reference}'s`
}

/** A factor as a change: 1.05 is `+5.0 %`. */
function signed(factor: number): string {
  const change = (factor - 1) * 100
  if (change >= 1_000) return `× ${figure(factor)}`
  return `${change < 0 ? '-' : '+'}${Math.abs(change).toFixed(1)} %`
}

/** The result in sentences. */
export function verdicts(
  before: HttpResult,
  after: HttpResult,
  comparisons: readonly Comparison[],
  threshold: number,
): string {
  const reference = referenceOf(before, after)
  const judged = comparisons.filter(({ verdict }) => verdict !== 'told')
  const lines = judged
    .filter(({ verdict }) => verdict === 'better' || verdict === 'worse')
    .map((row) => {
      const { low, high } = row.change.interval
      const text =
        `${row.variant}: ${nameOf(row)} is ${row.verdict}: ${signed(row.change.mean)} ` +
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
  if (reference !== null && judged.length > 0) {
    lines.push(
      `Rates and latencies of two hours differ by themselves: they are judged as multiples of ${reference}'s in the same round.`,
    )
  }
  return lines.join('\n')
}
