import type { Variant } from '../contenders.ts'
import type { Ending } from '../experiment/rounds.ts'
import type { MeasuredStack, WorkloadSettings } from '../http/result.ts'
import type { Origin } from '../measure/machine.ts'
import type { Summary } from '../statistics.ts'

/** What `npm run load -- latency --json` writes. */
export interface LatencyResult extends Origin, Ending, MeasuredStack {
  format: 'onetrip-load-latency/1'
  /** Name and version of what sends the requests at a fixed rate. */
  generator: string
  options: LatencySettings
  /** What each variant answers at full speed; null when rates were given instead of shares. */
  capacity: Capacity | null
  /** In the order in which they were asked for. */
  rates: LatencyRate[]
  /** One for each rate and variant: by rate, then by variant. */
  summaries: LatencySummary[]
  samples: LatencySample[]
}

export interface LatencySettings extends WorkloadSettings {
  variants: Variant[]
  connections: number
  /** Seconds per run. */
  duration: number
  /**
   * Of each variant at each rate, over all rounds: runs are longer where that many are due in reasonable
   * time (see `secondsAt`). 0, and absent in older files, for runs that are all equally long.
   */
  requests?: number | undefined
  rounds: number
  /** Seconds of warm-up per variant. */
  warmup: number
  /** When requests are due: evenly spaced, or at random times with the same mean rate. */
  arrivals: Arrivals
}

export const arrivals = ['even', 'poisson'] as const
export type Arrivals = (typeof arrivals)[number]

export interface Capacity {
  /** Name and version of what was used for it. */
  generator: string
  /** Answers with 2xx per second at full speed: a run for each variant and round. */
  requestsPerSecond: Partial<Record<Variant, Summary>>
  /** The variant with the lowest median: the shares are of its capacity. */
  slowest: Variant
}

export interface LatencyRate {
  /** Of the slowest variant's capacity, 0 to 1; null for a rate that was given. */
  share: number | null
  /** Requests that are due per second. */
  requestsPerSecond: number
}

/**
 * Latencies in milliseconds, each from when its request was due to the end of its answer. One that
 * failed, or was not sent in time, counts as slower than all others.
 *
 * A percentile is null when fewer than ten requests are beyond it, or when it is among those that failed.
 */
export interface Percentiles {
  p50: number | null
  p75: number | null
  p90: number | null
  p99: number | null
  p999: number | null
  p9999: number | null
}

/** Requests of a run, or of several: `due` is the sum of all others. */
export interface Counts {
  due: number
  /** Answered with 2xx. */
  ok: number
  /** Not sent by the end of the run, because no connection was free. */
  notSent: number
  /** Everything else, by status (`503`), error code (`ECONNREFUSED`), or `timeout`. */
  errors: Record<string, number>
}

/** One run of one variant at one rate. */
export interface LatencySample extends Counts {
  variant: Variant
  /** 1 for the first round. */
  round: number
  /** Requests that are due per second. */
  rate: number
  /** From the first request's due time to the last answer, in seconds. */
  seconds: number
  latency: Percentiles & Extremes
  /** The most requests that were due and waited for a connection at the same time. */
  longestLine: number
  pacer: Pacer
  /** CPU time per request, in microseconds. */
  perRequest: CpuPerRequest
  /** Share of this machine's CPU time, 0 to 1, that went elsewhere; null where it is not told. */
  elsewhere: number | null
}

/** In milliseconds, of the requests that were answered with 2xx; null when there was none. */
export interface Extremes {
  max: number | null
  mean: number | null
}

/** How well the generator kept to the schedule. */
interface Pacer {
  /**
   * Milliseconds from when a request was due to when it was sent, of those for which a connection was
   * free. (It is a part of their latencies.)
   */
  lateness: { p50: number; p99: number; max: number }
  /** Share of the time, 0 to 1, in which the thread that sends was busy. */
  utilization: number
}

interface CpuPerRequest {
  generatorCpuMicros: number
  apiCpuMicros: number
  redisCpuMicros: number
}

/** All runs of one variant at one rate. */
export interface LatencySummary extends Counts {
  variant: Variant
  /** Requests that were due per second. */
  rate: number
  /** See LatencyRate. */
  share: number | null
  /** Of the requests of all rounds together. */
  latency: Percentiles & Extremes
  /** The percentiles round by round; null where a round has none. */
  rounds: Record<keyof Percentiles, Summary | null>
  /** For a curve: latencies in milliseconds at growing shares (0 to 1) of the requests of all rounds. */
  curve: { share: number; ms: number }[]
  longestLine: number
  /** Of the requests of all rounds together; the utilization is the highest of all rounds. */
  pacer: Pacer
  perRequest: Record<keyof CpuPerRequest, Summary>
  /** Why nothing is claimed from this row; empty for one that is sound. */
  doubts: Doubt[]
  /** The highest of all rounds; 0 if not told. */
  elsewhere: number
}

/**
 * - `pacer late`: of the requests for which a connection was free, one in a hundred was sent more than a
 *   millisecond too late, and that is more than a fifth of the p99.
 * - `generator at its limit`: the thread that sends was busy nearly all the time.
 */
export type Doubt = 'pacer late' | 'generator at its limit'
