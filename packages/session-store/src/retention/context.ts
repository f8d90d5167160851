import type { RetentionStep } from '../diagnostics.ts'
import type { Keys } from '../keys.ts'
import type { Runner } from '../redis/runner.ts'
import { MAX_LOGIN_SECONDS } from '../sessions/list.ts'

/** What the tasks of a janitor share. */
export interface RetentionContext {
  readonly runner: Runner
  readonly keys: Keys
  /** When the current run started, Unix seconds with fraction. */
  now(): number
  readonly maxSessions: number
  readonly idleSeconds: number
  readonly batchSize: number
  readonly keptItems: number
  readonly sweepKeys: boolean
}

/** The result of one step of a task. A step is a few round trips, each with at most one batch. */
export type TaskStep = Partial<Omit<RetentionStep, 'durationMs'>>

/** A login that started before this time is complete or has failed. Unix seconds. */
export const settledBefore = ({ now }: RetentionContext): number => now() - MAX_LOGIN_SECONDS
