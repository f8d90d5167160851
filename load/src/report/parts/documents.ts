import type { DocumentFigure } from '../../redis/experiment.ts'
import { documentRow } from '../../store/documents.ts'
import type { StoreRow } from '../../store/summary.ts'
import { figure, withRange } from '../../table.ts'
import type { GroupedChart, ReportTable } from '../model.ts'

/** What the documents measured, as they print it: a table for each of them. */
export function documentsTables(figures: readonly DocumentFigure[]): ReportTable[] {
  return [...Map.groupBy(figures, ({ source }) => source)].map(([source, list]) => ({
    caption: `The documents measured (${source})`,
    head: ['what', 'figure', 'unit'],
    rows: list.map(({ what, value, unit }) => [what, figure(value), unit]),
    texts: [2],
  }))
}

/** What was measured of `updateToken`, one call at a time over one pooled connection, over a link. */
export interface DistanceRow {
  link: string
  linkText: string
  pingMs: number | null
  rows: readonly StoreRow[]
}

interface Compared {
  distance: DistanceRow
  sequential: StoreRow
  pipeline: StoreRow
}

function comparable(distances: readonly DistanceRow[]): Compared[] {
  return distances.flatMap((distance) => {
    const find = (name: string) => distance.rows.find(({ strategy }) => strategy === name)
    const [sequential, pipeline] = [find('sequential'), find('pipeline')]
    return sequential && pipeline ? [{ distance, sequential, pipeline }] : []
  })
}

/** The documents' table 4 beside ours; undefined where the two strategies were not both measured. */
export function tableFour(distances: readonly DistanceRow[]): ReportTable | undefined {
  const rows = comparable(distances).map(({ distance, sequential, pipeline }) => {
    const theirs = documentRow(distance.link)
    return [
      distance.linkText,
      distance.pingMs === null ? '-' : `${Number(distance.pingMs.toPrecision(3))} ms`,
      withRange(sequential.callsPerSecond),
      withRange(pipeline.callsPerSecond),
      withRange(pipeline.ratio),
      theirs ? figure(theirs.sequential) : '-',
      theirs ? figure(theirs.pipeline) : '-',
      theirs ? (theirs.pipeline / theirs.sequential).toFixed(1) : '-',
    ]
  })
  if (rows.length === 0) return undefined
  return {
    caption: "update_token, calls per second of one caller: ours and the documents' (table 4)",
    head: [
      'link',
      'PING takes',
      'sequential (range)',
      'pipeline (range)',
      'ratio (range)',
      'documents: sequential',
      'documents: pipeline',
      'documents: ratio',
    ],
    rows,
  }
}

/** The ratios of that table as a chart. */
export function tableFourChart(distances: readonly DistanceRow[]): GroupedChart | undefined {
  const compared = comparable(distances)
  if (compared.length === 0) return undefined
  const theirs = compared.map(({ distance }) => documentRow(distance.link))
  const ours = compared.map(({ pipeline }) => pipeline.ratio?.median ?? null)
  const ratios = theirs.map((row) => (row ? row.pipeline / row.sequential : null))
  const told = compared.map(
    ({ distance }, index) =>
      `${distance.link} ${figure(ours[index] ?? Number.NaN)}, documents ${figure(ratios[index] ?? Number.NaN)}`,
  )
  return {
    kind: 'grouped',
    title: 'How many times as many calls a pipeline makes as a round trip per command',
    description: `Pipeline compared with a round trip per command: ${told.join('; ')}.`,
    unit: 'times as many calls',
    names: compared.map(({ distance }) => distance.link),
    groups: [
      { name: 'here', values: ours },
      { name: 'in the documents', values: ratios },
    ],
  }
}
