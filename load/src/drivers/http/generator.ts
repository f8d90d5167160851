import type { Call } from './workload.ts'

/** What sends the requests. */
export const generators = ['autocannon', 'wrk'] as const
export type GeneratorName = (typeof generators)[number]

/** Sends requests over all connections, each as soon as the connection's last one was answered. */
export type Saturate = (options: SaturationOptions) => Promise<Saturation>

interface SaturationOptions {
  /** Of the API; must be on this machine, unless the user said that it is theirs (`owned`). */
  url: string
  owned?: boolean
  /** What each connection sends; the number of lists is the number of connections. */
  calls: readonly (readonly Call[])[]
  seconds: number
  /** Ends the run early; what was measured until then is returned. */
  signal: AbortSignal
  /** About once a second, by a generator that tells: answers per second since the last call. */
  onProgress?: (progress: Progress) => void
}

export interface Progress {
  requestsPerSecond: number
  /** Median and 99th percentile of that time, in milliseconds, by a generator that tells. */
  p50?: number
  p99?: number
  /** Requests in that time that failed without an answer. */
  failures: number
}

export interface Saturation {
  /** How long it took, in seconds. */
  seconds: number
  /** Requests that may have reached the API: answered, or in flight at the end, or given up. */
  sent: number
  /** Requests answered, with whatever status. */
  answered: number
  /** Requests answered with 2xx. */
  ok: number
  /** Everything else, by status (`503`), error code (`ECONNREFUSED`), `timeout` or `lost`. */
  errors: Record<string, number>
  latency: Latency
  /** Of the requests that were answered: all that was written to, and read from, the connections. */
  bytes: { sent: number; received: number }
  generator: {
    /** CPU seconds of the generator's process, all threads. */
    cpuSeconds: number
    /** Share of the time, 0 to 1, in which the one thread that sends was busy. */
    utilization: number
  }
}

/** The percentiles that are kept, by their names. */
export const percentiles = {
  p50: 50,
  p75: 75,
  p90: 90,
  p95: 95,
  p975: 97.5,
  p99: 99,
  p999: 99.9,
} as const

/** A figure for each of the percentiles. */
export function percentilesOf<Figure>(
  figure: (percentile: number) => Figure,
): Record<keyof typeof percentiles, Figure> {
  const entries = Object.entries(percentiles).map(([name, share]) => [name, figure(share)])
  return Object.fromEntries(entries) as Record<keyof typeof percentiles, Figure>
}

/**
 * Of the answers, in milliseconds, from the sending of a request to the end of its answer. Null where
 * there was no answer, and for what files of an older format do not have.
 */
export type Latency = Record<keyof typeof percentiles | 'max' | 'mean', number | null>

/** A request without an answer counts as a timeout after so many seconds. */
export const TIMEOUT_S = 10
