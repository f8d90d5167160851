/** The factors, metrics and marks of an experiment. */
export interface Shape {
  /** The name of the command: `short-connections`. */
  readonly name: string
  /** The parameters that vary between cases, in the order of the first columns of a table. */
  readonly factors: readonly Factor[]
  readonly metrics: readonly Metric[]
  /** The factor whose values are compared with each other. */
  readonly subject: string
  /**
   * The factors in which the baseline of a case differs from it; null if the case has no baseline. A baseline is
   * its own baseline.
   */
  baseline?(one: Case, cases: readonly Case[]): Partial<Case> | null
  /** The possible marks on rows: reasons not to trust some of their figures. */
  readonly doubts?: Readonly<Record<string, Doubt>>
}

/** The values of the factors, by name. */
export type Case = Readonly<Record<string, string | number>>

export interface Factor {
  readonly name: string
  /** The head of its column. Default: the name. */
  readonly label?: string
  /** Formats a value. Default: numbers as `10,000`, strings unchanged. */
  text?(value: string | number): string
}

export interface Metric {
  readonly name: string
  /** The head of its column, with the unit: `CPU µs /request`. */
  readonly label: string
  /** `pace` depends on the current speed of the machine. Results are compared by its ratio to the baseline. */
  readonly kind?: 'pace'
  /** Absent: not compared. */
  readonly better?: 'higher' | 'lower'
  /** `percent`: a share of 0 to 1. `fixed`: always two decimals. `whole`: no decimals. Default: three digits. */
  readonly format?: 'percent' | 'fixed' | 'whole'
  /** The value over all rounds; `Infinity` for failed requests. Default: the median of the rounds. */
  overall?(samples: readonly Measured[]): number | null
}

/** @throws RangeError for a metric that the experiment does not have. */
export function metricOf({ name: experiment, metrics }: Shape, name: string): Metric {
  const metric = metrics.find((one) => one.name === name)
  if (metric) return metric
  throw new RangeError(`${experiment} has no metric ${name}`)
}

// How to compare rates, latencies, and CPU time or counts.
export const asRate = { kind: 'pace', better: 'higher' } as const
export const asCost = { better: 'lower' } as const
export const asLatency = { kind: 'pace', better: 'lower' } as const

export interface Doubt {
  readonly mark: string
  /** The explanation below the table. */
  readonly text: string
  /** Whether ratios of `pace` metrics are still shown. Default: no. */
  readonly keepsRatios?: boolean
}

/** The result of one run. */
export interface Measured {
  /** By metric name; null if there is no value. */
  values: Readonly<Record<string, number | null>>
  /** CPU time of measured programs that this process did not start, so that it is no disturbance. Default: 0. */
  foreignCpuSeconds?: number
  /** Failures by kind: `{ timeout: 3 }`. */
  errors?: Readonly<Record<string, number>>
  /** Names in `doubts`. */
  doubts?: readonly string[]
  /** Distributions as HdrHistogram's compressed Base64 (`latency`, in microseconds). */
  histograms?: Readonly<Record<string, string>>
  /** Additional data for the report. */
  details?: Readonly<Record<string, unknown>>
}

/** By displayed name. */
export type Facts = Readonly<Record<string, string | number | null>>

/** All combinations of the values. The last factor varies fastest. */
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
