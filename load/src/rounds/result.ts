import type { GitState, Machine } from '../measure/machine.ts'
import type { Case, Facts, Measured } from './shape.ts'

export const FORMAT = 'onetrip-result/1'

/** The file that `--json` writes: one sample for each run, and the conditions of the measurement. */
export interface Result {
  format: typeof FORMAT
  experiment: string
  /** Start time in ISO 8601. */
  date: string
  command: string
  git: GitState | null
  machine: Machine
  /** Share of the machine's CPU time that other programs and guests used, 0 to 1; null if unknown. */
  elsewhere: number | null
  network: 'own namespace' | 'shared'
  options: Readonly<Record<string, unknown>>
  /** Facts about the load that are not among the options. */
  load: Facts
  /** Versions. */
  software: Facts
  /** Whether the user ended it early. Then `samples` has the complete rounds only. */
  interrupted: boolean
  /** The error that ended it early. Then `samples` has the complete rounds only. */
  failure?: string
  /** The label of each metric, with its unit. */
  metrics: Readonly<Record<string, string>>
  samples: readonly Sample[]
}

/** One run of one case. */
export interface Sample extends Measured {
  case: Case
  /** From 1. */
  round: number
}

/**
 * The fact in `load` with Redis's setting io-threads (1 means off): a number, or a text such as `1, 3` if cases
 * differ; null if unknown. Results of older versions do not have it.
 */
export const IO_THREADS = "Redis's I/O threads"

/** The metric in every sample with the share of CPU time used by other programs and guests; null if unknown. */
export const ELSEWHERE = 'elsewhere'
