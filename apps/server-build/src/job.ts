import type { Home } from './home.ts'
import type { Progress } from './progress.ts'

/** What every step of a command needs. */
export interface Job {
  readonly home: Home
  readonly env: NodeJS.ProcessEnv
  readonly progress: Progress
  /** Aborted by Ctrl-C and SIGTERM: steps end their processes, remove what is unfinished and throw. */
  readonly signal: AbortSignal
}
