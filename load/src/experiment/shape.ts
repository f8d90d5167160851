/** What is measured: how cases are told apart, and what there is to know of each. */
export interface Shape {
  /** As on the command line: `short-connections`. */
  readonly name: string
  /** What tells cases apart, in the order of a table's first columns. */
  readonly factors: readonly Factor[]
  readonly metrics: readonly Metric[]
  /** The factor whose values are compared side by side; the others are circumstances. */
  readonly subject: string
  /**
   * The case that a ratio of this one refers to, as far as it differs; null for none. The baseline of a
   * baseline is itself.
   */
  baseline?(one: Case, cases: readonly Case[]): Partial<Case> | null
  /** What a mark on a row means: why a figure of it is not what it seems. */
  readonly doubts?: Readonly<Record<string, Doubt>>
}

/** The values of the factors, by name. */
export type Case = Readonly<Record<string, string | number>>

interface Factor {
  readonly name: string
  /** As a column's head. Default: the name. */
  readonly label?: string
  /** How a value is shown. Default: numbers as `10,000`, all else as it is. */
  text?(value: string | number): string
}

export interface Metric {
  readonly name: string
  /** As a column's head, with the unit: `CPU µs /request`. */
  readonly label: string
  /** Of a chart's axis. Default: the label. */
  readonly unit?: string
  /**
   * How two results are compared. `pace` depends on how fast the machine is just now, so it is judged as a
   * multiple of the baseline of the same round; `cpu` on the processor; `count` on neither. `given` was
   * asked for, and must be nearly the same. Absent: not compared.
   */
  readonly kind?: 'pace' | 'cpu' | 'count' | 'given'
  readonly better?: 'higher' | 'lower'
  /** Smaller values count as this: a multiple of next to nothing means nothing. */
  readonly least?: number
  /** `percent`: a share of 0 to 1. `fixed`: always two decimals. `whole`: none. Default: three digits. */
  readonly format?: 'percent' | 'fixed' | 'whole'
  /** The figure of all rounds together; `Infinity` where it is beyond measure. Default: their median. */
  overall?(samples: readonly Measured[]): number | null
}

/** @throws RangeError for a metric that the experiment does not have. */
export function metricOf({ name: experiment, metrics }: Shape, name: string): Metric {
  const metric = metrics.find((one) => one.name === name)
  if (metric) return metric
  throw new RangeError(`${experiment} has no metric ${name}`)
}

/** How rates, CPU time in microseconds, counts, and latencies in milliseconds are compared. */
export const asRate = { kind: 'pace', better: 'higher', least: 0.1 } as const
export const asCpu = { kind: 'cpu', better: 'lower', least: 1 } as const
export const asCount = { kind: 'count', better: 'lower', least: 0.05 } as const
export const asLatency = { kind: 'pace', better: 'lower', least: 0.01 } as const

export interface Doubt {
  readonly mark: string
  /** A sentence or two for readers of the table. */
  readonly text: string
  /** Whether ratios of `pace` are shown all the same. Default: they are not. */
  readonly keepsRatios?: boolean
}

/** What one run gave. */
export interface Measured {
  /** By the metric's name; null where there is none. */
  values: Readonly<Record<string, number | null>>
  /** CPU time of measured programs that this process did not start: it did not go elsewhere. Default 0. */
  foreignCpuSeconds?: number
  /** Failures by kind: `{ timeout: 3 }`. */
  errors?: Readonly<Record<string, number>>
  /** Names in `doubts`. */
  doubts?: readonly string[]
  /** Distributions as HdrHistogram's compressed Base64 (`latency`, in microseconds). */
  histograms?: Readonly<Record<string, string>>
  /** How a run went, second by second. */
  series?: Series
  /** What else is worth keeping, as text or figures. */
  details?: Readonly<Record<string, unknown>>
}

/** Of each part of about a second: when it ended, answers with 2xx, and how long they took. */
export interface Series {
  /** Since the start of the run. */
  readonly second: readonly number[]
  readonly requestsPerSecond: readonly number[]
  /** In milliseconds; null where nothing was answered. */
  readonly p99: readonly (number | null)[]
}

/** By their names, as they are shown. */
export type Facts = Readonly<Record<string, string | number | null>>

/** A case for each combination of the values; those of the last factor change first. */
export function product<One extends Case>(
  values: {
    readonly [Factor in keyof One]: readonly One[Factor][]
  },
): One[] {
  return Object.entries<readonly (string | number)[]>(values).reduce<Case[]>(
    (cases, [factor, list]) =>
      cases.flatMap((one) => list.map((value) => ({ ...one, [factor]: value }))),
    [{}],
  ) as One[]
}
