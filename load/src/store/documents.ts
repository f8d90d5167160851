import type { DocumentFigure } from '../redis/experiment.ts'

/** A row of the documents' table of `benchmark_update_token`: calls per second. */
export interface DocumentRow {
  /** The name of the link here. */
  link: string
  sequential: number
  pipeline: number
}

const rows: readonly DocumentRow[] = [
  { link: 'unix', sequential: 3_761, pipeline: 6_394 },
  { link: 'loopback', sequential: 3_257, pipeline: 5_991 },
  { link: 'switch', sequential: 739, pipeline: 2_841 },
  { link: 'vpn', sequential: 3.67, pipeline: 18.2 },
]

const SOURCE = 'Redis性能优化方案, table 4: update_token and update_token_pipeline, in Python'

/** What the documents measured over a link. */
export function documentRow(link: string): DocumentRow | undefined {
  return rows.find((row) => row.link === link)
}

/** The table as a list. */
export const updateTokenFigures: readonly DocumentFigure[] = rows.flatMap(
  ({ link, sequential, pipeline }) => [
    { what: `${link}, sequential`, value: sequential, unit: 'calls/s', source: SOURCE },
    { what: `${link}, pipeline`, value: pipeline, unit: 'calls/s', source: SOURCE },
  ],
)
