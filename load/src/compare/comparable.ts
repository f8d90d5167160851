/** What two results are compared by: facts by name. */
export type Facts = Readonly<Record<string, unknown>>

/** A result as far as it can be compared with another one of its kind. */
export interface Comparable {
  /** As on the command line: `http`, `latency`, `store`. */
  part: string
  date: string
  rounds: number
  rows: Row[]
  /** What was sent to what. */
  load: Facts
  /** On what. */
  machine: Facts
  /** Name and version of the client of each variant. */
  clients: Partial<Record<string, string>>
  software: Facts
  /** How much was measured. */
  extent: Facts
  /** Share of the machine's CPU time that went elsewhere: of the rounds' median, and the most. */
  elsewhere: { median: number; most: number }
}

/** One variant under one set of circumstances. */
export interface Row {
  /** What sets it apart from other rows of the variant: `50 %`, `64 connections`; else empty. */
  at: string
  /** The same as it is shown. */
  where: string
  variant: string
  /** Requests that were due per second; null where as many were sent as were answered. */
  rate: number | null
  /** Whether something besides the variant may have set its pace. */
  limited: boolean
  figures: Figures[]
}

/** A figure by which two results are compared. */
export interface Measure {
  name: string
  better: 'higher' | 'lower'
  /**
   * What else it depends on. `pace`: on how fast the machine is just now, so it is judged as a multiple of
   * what a reference reached in the same round. `cpu`: on the processor. `count`: on neither.
   */
  kind: 'pace' | 'cpu' | 'count'
  /** Below this the figure counts as this: next to nothing is no multiple of next to nothing. */
  least: number
}

/** A measure, and how it is taken from a sample. */
export interface MeasureOf<Sample> extends Measure {
  /** Null where the sample has none. */
  of: (sample: Sample) => number | null
}

/** What a measure is in each round. */
export interface Figures {
  measure: Measure
  rounds: ReadonlyMap<number, number>
}

/** The figures of samples that are all of one row. */
export function figuresOf<Sample extends { round: number }>(
  measures: readonly MeasureOf<Sample>[],
  samples: readonly Sample[],
): Figures[] {
  return measures.map(({ of, ...measure }) => ({
    measure,
    rounds: new Map(
      samples.flatMap((sample) => {
        const figure = of(sample)
        return figure === null ? [] : [[sample.round, figure] as const]
      }),
    ),
  }))
}

/** How many rounds there are samples of. */
export function roundsIn(samples: readonly { round: number }[]): number {
  return new Set(samples.map(({ round }) => round)).size
}
