import type { RetentionStep } from '../diagnostics.ts'
import type { Settings } from '../options.ts'
import type { checkedJanitorOptions } from './options.ts'

/** What the tasks of a janitor share. `now`: when the current run started. */
export type RetentionContext = Settings & ReturnType<typeof checkedJanitorOptions>

/** The result of one step of a task. A step is a few round trips, each with at most one batch. */
export type TaskStep = Partial<Omit<RetentionStep, 'durationMs'>>
