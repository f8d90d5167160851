import type { Row, Rows } from './rows.ts'
import type { Shape } from './shape.ts'

/** A part of a report: a table with one line per row, without its empty columns. */
export interface Section {
  readonly title: string
  readonly caption: string
  /** Default: all rows of the result. Without rows, the section is omitted. */
  readonly rows?: Rows
  /** The factors of the first columns. Default: the factors in which the rows differ. */
  readonly factors?: readonly string[]
  /** The name of a metric shows its median. */
  readonly columns: readonly (string | Column | ColumnOf)[]
  /** Whether the terminal omits it. */
  readonly isDetail?: boolean
}

export interface Column {
  readonly head: string
  cell(row: Row, rows: Rows): string
  /** Whether it is left-aligned. */
  readonly isText?: boolean
}

/** A column of a metric, whose format and default head the experiment declares. */
export type ColumnOf = (shape: Shape) => Column

export interface Table {
  readonly caption: string
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
  /** Indexes of the columns with text. They are left-aligned. */
  readonly texts: readonly number[]
}
