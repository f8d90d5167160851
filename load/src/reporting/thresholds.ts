import { counted } from '../experiment/figures.ts'
import type { Rows } from '../experiment/rows.ts'
import { type Metric, metricOf } from '../experiment/shape.ts'
import { ERRORS, type Judged } from '../experiment/thresholds.ts'
import { metricText } from './columns.ts'

const errors: Metric = { name: ERRORS, label: ERRORS, format: 'whole' }

/** Sentences with the crossed thresholds; empty without thresholds. */
export function thresholdNotes(rows: Rows, judged: readonly Judged[]): string[] {
  if (judged.length === 0) return []
  const crossed = judged
    .filter(({ isMet }) => !isMet)
    .map(({ threshold: { text, metric }, row, value }) => {
      const shown = metricText(metric === ERRORS ? errors : metricOf(rows.shape, metric), value)
      return `${text} is crossed by ${rows.nameOf(row)}: ${shown}.`
    })
  return [
    `Of ${counted(judged.length, 'threshold')}, ${crossed.length || 'none'} crossed.`,
    ...crossed,
  ]
}
