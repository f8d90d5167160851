import type { GitState, Machine } from '../measure/machine.ts'
import type { Case, Facts, Measured } from './shape.ts'

export const FORMAT = 'onetrip-result/1'

/** What `--json` writes: every run, as a row of tidy data, and what it was measured with. */
export interface Result {
  format: typeof FORMAT
  experiment: string
  /** When it began, in ISO 8601. */
  date: string
  command: string
  git: GitState | null
  machine: Machine
  /** Share of the machine's CPU time, 0 to 1, that went elsewhere; null where it is not known. */
  elsewhere: number | null
  network: 'own namespace' | 'shared'
  options: Readonly<Record<string, unknown>>
  /** What the options do not say of the load, and the versions of all that took part. */
  load: Facts
  software: Facts
  /** Whether the user ended it early: then it has the rounds that were complete. */
  interrupted: boolean
  /** What went wrong before the last round; likewise. */
  failure?: string
  /** What the metrics had to be, as the user wrote it. */
  thresholds?: readonly string[]
  /** What each metric is, for readers of the file: label and unit. */
  metrics: Readonly<Record<string, string>>
  samples: readonly Sample[]
}

/** One run of one case. */
export interface Sample extends Measured {
  case: Case
  /** 1 for the first. */
  round: number
}

/**
 * The fact of `load` with Redis's setting of io-threads, 1 being off: a number, or a list as text where cases
 * differ; null where Redis does not say. Older results do not have it.
 */
export const IO_THREADS = "Redis's I/O threads"

/** The share of CPU time that went elsewhere during a run: in every sample, null where it is not known. */
export const ELSEWHERE = 'elsewhere'
