import type { Registry } from 'prom-client'

/** Tells a worker which one it is, from 1; whoever replaces it takes the number over. */
export const NUMBER_VARIABLE = 'ONETRIP_WORKER'

/** The metrics of one process, as prom-client gives them out to be merged. */
export type ProcessMetrics = Awaited<ReturnType<Registry['getMetricsAsJSON']>>

export type ToPrimary =
  /** All but the port is ready. */
  | { kind: 'ready' }
  /** It cannot serve, and ends. */
  | { kind: 'failed'; reason: string }
  /** The answer to `collect`. */
  | { kind: 'collected'; metrics: ProcessMetrics }
  /** Wants the metrics of all processes. */
  | { kind: 'merge'; request: number }

export type ToWorker =
  | { kind: 'listen' }
  | { kind: 'collect' }
  /** The answer to `merge`; null if that failed, which the primary has logged. */
  | { kind: 'merged'; request: number; text: string | null }
