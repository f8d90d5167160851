/** A part of a report, independent of its output format. */
export interface Section {
  readonly title: string
  readonly tables: readonly Table[]
  /** Whether the terminal omits the section. */
  readonly isDetail?: boolean
}

export interface Table {
  readonly caption: string
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
  /** Indexes of the columns with text. They are left-aligned. */
  readonly texts: readonly number[]
}
