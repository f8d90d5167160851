import type { Command, Sender } from '@onetrip/session-store'

/** One connection of a client that competes with ours. */
export type Contender = Omit<Sender, 'name'>

export interface ContenderOptions {
  /** `redis://…` or `unix:///…`. */
  redisUrl: string
  /** How long an update may take, for clients that have such a limit. */
  deadlineMs: number
}

/** A command as most clients want it. */
export const words = (command: Command): string[] => command.map(String)
