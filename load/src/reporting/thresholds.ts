import { counted } from '../experiment/figures.ts'
import type { Rows } from '../experiment/rows.ts'
import type { Section } from '../experiment/section.ts'
import { type Metric, metricOf } from '../experiment/shape.ts'
import { ERRORS, type Judged } from '../experiment/thresholds.ts'
import { metricText } from './columns.ts'

const errors: Metric = { name: ERRORS, label: ERRORS, format: 'whole' }

/** The section of a report with the verdicts; empty without thresholds. */
export function thresholdSections(rows: Rows, judged: readonly Judged[]): Section[] {
  if (judged.length === 0) return []
  const crossed = judged.filter(({ isMet }) => !isMet).length
  const table = {
    caption: `Of ${counted(judged.length, 'threshold')}, ${crossed || 'none'} crossed`,
    head: ['threshold', 'case', 'metric', 'value', 'verdict'],
    rows: judged.map(({ threshold, row, value, isMet }) => {
      const metric = threshold.metric === ERRORS ? errors : metricOf(rows.shape, threshold.metric)
      const text = value === Number.POSITIVE_INFINITY ? 'failed' : metricText(metric, value)
      return [threshold.text, rows.nameOf(row), metric.label, text, isMet ? 'met' : 'crossed']
    }),
    texts: [0, 1, 2, 4],
  }
  return [{ title: 'Thresholds', tables: [table] }]
}
