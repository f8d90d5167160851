// What the figures of an experiment look like before they are text, Markdown or a page.

/** What the report begins with. */
export interface Headline {
  /** A few words with the most important figure. */
  readonly text: string
  /** What is compared, and how sure the figure is. */
  readonly detail: string
  /** Up to three figures. */
  readonly tiles: readonly { readonly value: string; readonly label: string }[]
}

export interface Section {
  readonly title: string
  readonly paragraphs?: readonly string[]
  readonly charts?: readonly Chart[]
  readonly tables: readonly Table[]
  /** Whether the terminal leaves it out. */
  readonly pageOnly?: boolean
}

export interface Table {
  readonly caption: string
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
  /** Indexes of the columns with text, which are left-aligned. */
  readonly texts: readonly number[]
}

export type Chart = BarChart | GroupedChart | LineChart

interface ChartText {
  readonly title: string
  /** Of the axis with the values. */
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
    /** Whether the row is marked: its bar is hatched. */
    readonly doubtful: boolean
  }[]
  /** Upper limits, drawn as lines across the bars. */
  readonly ceilings: readonly { readonly name: string; readonly value: number }[]
}

/** A few values for each name, one on top of the other. */
export interface GroupedChart extends ChartText {
  readonly kind: 'stacked'
  readonly names: readonly string[]
  readonly groups: readonly { readonly name: string; readonly values: readonly (number | null)[] }[]
}

/** Lines over names, or over shares near 1 (0.99) on an axis of percentiles. */
export interface LineChart extends ChartText {
  readonly kind: 'lines'
  readonly x: { readonly label: string; readonly names: readonly string[] } | 'percentiles'
  /** Whether the axis of the values is logarithmic. */
  readonly logarithmic: boolean
  /** The ends of the axis of the values, where several charts share it and are drawn small. */
  readonly shared?: readonly [low: number, high: number]
  readonly lines: readonly {
    readonly name: string
    /** By the index of the name or, for percentiles, the share; null where there is no value. */
    readonly points: readonly (readonly [x: number, y: number | null])[]
  }[]
}
