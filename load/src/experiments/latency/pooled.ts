import type { Histogram } from 'hdr-histogram-js'
import { latencyAt, type Percentile, shareOf, together } from '../../drivers/pacer/latencies.ts'
import type { Measured } from '../../experiment/result.ts'

/** The requests of some rounds together. */
export interface Pooled {
  /** Of those answered with 2xx, from due to the end of the answer, in microseconds. */
  latency: Histogram
  /** From due to sent, in microseconds, of those for which a connection was free. */
  lateness: Histogram
  /** All, those that failed or were not sent included. */
  due: number
}

type Rounds = readonly Pick<Measured, 'values' | 'histograms'>[]

const known = new WeakMap<Rounds, Pooled>()

export function pooled(rounds: Rounds): Pooled {
  const before = known.get(rounds)
  if (before) return before
  const all = (name: string) => together(rounds.map(({ histograms }) => histograms?.[name] ?? ''))
  const due = rounds.reduce((sum, { values }) => sum + (values.due ?? 0), 0)
  const one = { latency: all('latency'), lateness: all('lateness'), due }
  known.set(rounds, one)
  return one
}

/** A percentile in milliseconds; see `latencyAt`. */
export const percentileOf = ({ latency, due }: Pick<Pooled, 'latency' | 'due'>, name: Percentile) =>
  latencyAt(latency, shareOf(name), due)

/** The 99th percentile of how late requests were sent, in milliseconds; 0 where all had to wait in line. */
export const lateP99 = ({ lateness }: Pooled) =>
  lateness.totalCount === 0 ? 0 : lateness.getValueAtPercentile(99) / 1_000

/** Whether requests were sent so late that the latencies may be the generator's: by 1 ms and a fifth of the p99. */
export function isLate(pooled: Pooled): boolean {
  const late = lateP99(pooled)
  return late > 1 && late > 0.2 * (percentileOf(pooled, 'p99') ?? 0)
}
