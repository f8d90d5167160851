import type { summaryOf } from '../pacer/latencies.ts'
import type { Call } from './workload.ts'

interface SaturationOptions {
  /** Of the API; must be on this machine, unless the user said that it is theirs (`owned`). */
  url: string
  owned: boolean
  /** What each connection sends; the number of lists is the number of connections. */
  calls: readonly (readonly Call[])[]
  seconds: number
  /** Ends the run early; what was measured until then is returned. */
  signal: AbortSignal
}

interface Saturation {
  /** How long it took. */
  seconds: number
  /** Requests that may have reached the API: answered, or in flight at the end, or given up. */
  sent: number
  /** Requests answered with 2xx. */
  ok: number
  /** Everything else, by status (`503`), error code (`ECONNREFUSED`), `timeout` or `lost`. */
  errors: Record<string, number>
  /** From the sending of a request to the end of its answer; null where it is not known. */
  latency: ReturnType<typeof summaryOf> | null
  /** CPU seconds of the generator's process; share of the time, 0 to 1, in which its thread was busy. */
  generator: { cpuSeconds: number; utilization: number }
}

/** Sends requests over all connections, each as soon as the connection's last one was answered. */
export type Saturate = (options: SaturationOptions) => Promise<Saturation>

/** A request without an answer counts as a timeout after so many seconds. */
export const TIMEOUT_S = 10
