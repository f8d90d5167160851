import type { Home } from './home.ts'
import type { Progress } from './progress.ts'

/** The context of a command, passed to every step. */
export interface Job {
  readonly home: Home
  readonly env: NodeJS.ProcessEnv
  readonly progress: Progress
  /** Aborted by Ctrl-C and SIGTERM: steps end their processes, remove partial results and throw. */
  readonly signal: AbortSignal
}
