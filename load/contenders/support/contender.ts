import type { Command, Sender } from '@onetrip/session-store'

/** One connection of another client. */
export type Contender = Omit<Sender, 'name'>

export interface ContenderOptions {
  /** `redis://…` or `unix:///…`. */
  redisUrl: string
  /** The deadline of an operation, for clients with such an option. */
  deadlineMs: number
}

/** A command in the form that most clients accept. */
export const words = (command: Command): string[] => command.map(String)
