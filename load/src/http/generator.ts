import type { View } from './workload.ts'

/** What sends the requests. */
export const generators = ['autocannon', 'wrk'] as const
export type GeneratorName = (typeof generators)[number]

/** Sends `POST /views` over all connections, each as soon as its last request was answered. */
export type Saturate = (options: SaturationOptions) => Promise<Saturation>

interface SaturationOptions {
  /** Of the API; must be on this machine, unless the user said that it is theirs (`owned`). */
  url: string
  owned?: boolean
  /** What each connection sends; the number of lists is the number of connections. */
  views: readonly (readonly View[])[]
  seconds: number
  /** Ends the run early; what was measured until then is returned. */
  signal: AbortSignal
  /** About once a second, by a generator that tells: answers per second since the last call. */
  onProgress?: (progress: Progress) => void
}

export interface Progress {
  requestsPerSecond: number
  /** Requests in that time that failed without an answer. */
  failures: number
}

export interface Saturation {
  /** How long it took, in seconds. */
  seconds: number
  /** Requests that may have reached the API: answered, or in flight at the end, or given up. */
  sent: number
  /** Requests answered with 2xx. */
  ok: number
  /** Everything else, by status (`503`), error code (`ECONNREFUSED`), `timeout` or `lost`. */
  errors: Record<string, number>
  /** Of the answers, in milliseconds. */
  latency: Latency
  generator: {
    /** CPU seconds of the generator's process, all threads. */
    cpuSeconds: number
    /** Share of the time, 0 to 1, in which the one thread that sends was busy. */
    utilization: number
  }
}

export interface Latency {
  p50: number
  p90: number
  p99: number
  p999: number
  max: number
  mean: number
}

/** A request without an answer counts as a timeout after so many seconds. */
export const TIMEOUT_S = 10
