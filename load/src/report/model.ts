// What a report consists of, before it is a page or Markdown.

/** One result in a report. */
export interface Part {
  /** `http`, `latency`, `store` …: as on the command line. */
  readonly name: string
  /** As a heading. */
  readonly title: string
  /** The result in a sentence or two, the figure first; empty where none is claimed. */
  readonly headline: readonly string[]
  readonly sections: readonly Section[]
  /** Where, how, and of what it was measured. */
  readonly provenance: Provenance
  /** Every run, as it is in the file. */
  readonly samples: readonly ReportTable[]
  /** What was read. */
  readonly document: unknown
}

export interface Provenance {
  /** ISO 8601. */
  readonly date: string
  /** The command line. */
  readonly command: string
  /** What else there is to tell: `Machine`, `Redis` … */
  readonly facts: readonly (readonly [label: string, text: string])[]
}

export interface Section {
  readonly title: string
  readonly paragraphs?: readonly string[]
  readonly charts?: readonly Chart[]
  readonly tables?: readonly ReportTable[]
  /** Below: what marks mean, what is not claimed. */
  readonly notes?: readonly string[]
}

export interface ReportTable {
  readonly caption: string
  /** The first column says what a row is about; it is left-aligned, and so are the columns in `texts`. */
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
  /** Indexes of columns with text. */
  readonly texts?: readonly number[]
}

/** A chart, and in words what it shows. */
export type Chart = BarChart | GroupedChart | LineChart

interface ChartText {
  readonly title: string
  /** For who does not see it. */
  readonly description: string
  /** Of the axis with the values. */
  readonly unit: string
}

/** A bar for each name, with its range. */
export interface BarChart extends ChartText {
  readonly kind: 'bars'
  readonly bars: readonly Bar[]
}

interface Bar {
  readonly name: string
  readonly value: number
  readonly low: number
  readonly high: number
  /** Whether the row is one that nothing is claimed from: its bar is hatched. */
  readonly doubtful: boolean
}

/** A few values for each name: one on top of the other, or side by side. */
export interface GroupedChart extends ChartText {
  readonly kind: 'stacked' | 'grouped'
  readonly names: readonly string[]
  readonly groups: readonly { readonly name: string; readonly values: readonly (number | null)[] }[]
}

/** Lines over names, over figures (on a logarithmic axis), or over shares near 1, as 0.99. */
export interface LineChart extends ChartText {
  readonly kind: 'lines'
  readonly x: { readonly label: string; readonly names: readonly string[] } | 'percentiles'
  /** Whether the axis of the values is logarithmic. */
  readonly logarithmic: boolean
  readonly lines: readonly Line[]
}

interface Line {
  readonly name: string
  /** By the index of the name or, for percentiles, the share; null where there is no value. */
  readonly points: readonly (readonly [x: number, y: number | null])[]
}
