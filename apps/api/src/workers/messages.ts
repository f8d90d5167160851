import type { Registry } from 'prom-client'

/**
 * Environment variable with the worker's number, from 1. A replacement gets the number of its predecessor.
 */
export const NUMBER_VARIABLE = 'ONETRIP_WORKER'

/** Metrics of one process, in prom-client's format for merging. */
export type ProcessMetrics = Awaited<ReturnType<Registry['getMetricsAsJSON']>>

export type ToPrimary =
  /** Everything but the port is ready. */
  | { kind: 'ready' }
  /** The worker cannot serve and exits. */
  | { kind: 'failed'; reason: string }
  /** Reply to `collect`. */
  | { kind: 'collected'; metrics: ProcessMetrics }
  /** Request for the merged metrics of all processes. */
  | { kind: 'merge'; request: number }

export type ToWorker =
  | { kind: 'listen' }
  | { kind: 'collect' }
  /** Reply to `merge`; null if merging failed, which the primary has logged. */
  | { kind: 'merged'; request: number; text: string | null }
