import type { Outcome } from '../../../packages/session-store/src/outcomes.ts'
import type { Command, Update } from '../../../packages/session-store/src/updates.ts'

/** One connection of a client that competes with ours. */
export interface Contender {
  /** Sends the commands of an update and resolves with what became of each, in order. */
  send(update: Update<unknown>): Promise<Outcome[]>
  close(): Promise<void>
}

export interface ContenderOptions {
  /** `redis://…` or `unix:///…`. */
  redisUrl: string
  /** How long an update may take, for clients that have such a limit. */
  deadlineMs: number
}

/** A command as most clients want it. */
export const words = (command: Command): string[] => command.map(String)
