import type { OperationTrace } from './diagnostics.ts'

/** A Redis command as data: its name, then its arguments. */
export type Command = readonly [name: string, ...args: (string | number)[]]

const COMMANDS_WITH_KEY_COUNT = new Set('EVAL EVAL_RO EVALSHA EVALSHA_RO FCALL FCALL_RO'.split(' '))

/** The first key of a command; '' if it has none. */
export function firstKeyOf(command: Command): string {
  const hasCount = COMMANDS_WITH_KEY_COUNT.has(command[0].toUpperCase())
  if (hasCount && Number(command[2]) === 0) return ''
  return String(command[hasCount ? 3 : 1] ?? '')
}

/** Redis's reply to one command. */
export type Reply = string | number | null | readonly Reply[]

/** Commands that are sent together. */
export interface CommandList {
  readonly commands: readonly Command[]
  /** Set by the store while `onetrip:operation` has subscribers. */
  readonly trace?: OperationTrace
}

/** Commands that are sent together, and a function that reads the replies. */
export interface Operation<Result> extends CommandList {
  /** Whether no command writes. Then a retry after a lost reply is safe. */
  readonly readOnly: boolean
  /** Called with one reply for each command, in order, if none of them is an error. */
  read(replies: readonly Reply[]): Result
}

/** An operation whose replies say nothing of interest. */
export const writing = (...commands: readonly Command[]): Operation<void> => ({
  commands,
  readOnly: false,
  read: () => undefined,
})

/** Parses a reply WITHSCORES: a flat list (member, score, member …) in RESP2, pairs in RESP3. */
export const memberScores = (reply: Reply | undefined): [member: string, score: number][] => {
  const flat = Array.isArray(reply) ? (reply as readonly Reply[]).flat() : []
  return Array.from({ length: flat.length / 2 }, (_, index) => [
    String(flat[2 * index]),
    Number(flat[2 * index + 1]),
  ])
}

/** Converts milliseconds to Unix seconds with fraction, which Redis stores as in Redis in Action. */
export const scoreOf = (time: number): number => time / 1000
export const timeOf = (score: Reply | undefined): number => Math.round(1000 * Number(score ?? 0))
