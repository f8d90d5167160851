// The structure of a report, independent of its output format.

/** The top of the report. */
export interface Headline {
  /** A few words with the most important figure. */
  readonly text: string
  /** The compared rows, and the confidence interval. */
  readonly detail: string
  /** Up to three figures. */
  readonly tiles: readonly { readonly value: string; readonly label: string }[]
}

export interface Section {
  readonly title: string
  readonly paragraphs?: readonly string[]
  readonly charts?: readonly Chart[]
  readonly tables: readonly Table[]
  /** Whether the terminal omits the section. */
  readonly pageOnly?: boolean
}

export interface Table {
  readonly caption: string
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
  /** Indexes of the columns with text. They are left-aligned. */
  readonly texts: readonly number[]
}

export type Chart = BarChart | GroupedChart | LineChart

interface ChartText {
  readonly title: string
  /** Of the value axis. */
  readonly unit: string
}

/** A bar for each name, with its range. */
export interface BarChart extends ChartText {
  readonly kind: 'bars'
  readonly bars: readonly {
    readonly name: string
    readonly value: number
    readonly low: number
    readonly high: number
    /** Whether the row is marked. Then its bar is hatched. */
    readonly doubtful: boolean
  }[]
  /** Upper limits, drawn as lines across the bars. */
  readonly ceilings: readonly { readonly name: string; readonly value: number }[]
}

/** Stacked bars: several values for each name. */
export interface GroupedChart extends ChartText {
  readonly kind: 'stacked'
  readonly names: readonly string[]
  readonly groups: readonly { readonly name: string; readonly values: readonly (number | null)[] }[]
}

/** Lines over named points, or over percentiles (shares such as 0.99). */
export interface LineChart extends ChartText {
  readonly kind: 'lines'
  readonly x: { readonly label: string; readonly names: readonly string[] } | 'percentiles'
  /** Whether the value axis is logarithmic. */
  readonly logarithmic: boolean
  /** The range of the value axis, if several charts share it. Such charts are drawn small. */
  readonly shared?: readonly [low: number, high: number]
  readonly lines: readonly {
    readonly name: string
    /** `x` is the index of the name or, for percentiles, the share. `y` is null if there is no value. */
    readonly points: readonly (readonly [x: number, y: number | null])[]
  }[]
}
