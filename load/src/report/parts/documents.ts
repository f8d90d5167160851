import type { DocumentFigure } from '../../redis/experiment.ts'
import { figure } from '../../table.ts'
import type { ReportTable } from '../model.ts'

/** What the documents measured, as they print it: a table for each of them. */
export function documentsTables(figures: readonly DocumentFigure[]): ReportTable[] {
  return [...Map.groupBy(figures, ({ source }) => source)].map(([source, list]) => ({
    caption: `The documents measured (${source})`,
    head: ['what', 'figure', 'unit'],
    rows: list.map(({ what, value, unit }) => [what, figure(value), unit]),
    texts: [2],
  }))
}
