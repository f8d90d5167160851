import { publishError } from './diagnostics.ts'
import { StoreError } from './errors.ts'
import type { Command, Reply, Update } from './updates.ts'

/** What became of one command: what Redis replied, or why there is no reply. */
export type Outcome = Reply | Error

/**
 * Called while commands are sent to several servers, each time that one has answered: with an outcome for each
 * command, undefined where there is none yet.
 */
export type OnArrival = (outcomes: readonly (Outcome | undefined)[]) => void

/** Redis answered with an error, as opposed to: the answer was lost. */
export const isRefusal = (outcome: Outcome): outcome is Error =>
  outcome instanceof Error && outcome.name === 'ReplyError'

/** The first word of what Redis answered: `WRONGTYPE`, `MOVED`. The rest may quote an argument. */
export const errorKind = ({ message }: Error): string => message.split(' ', 1)[0] ?? ''

const isLost = (outcome: Outcome): outcome is Error =>
  outcome instanceof Error && !isRefusal(outcome)

const READ_COMMANDS = new Set(
  'BITCOUNT HGET HGETALL HMGET HSCAN PING SCAN ZCARD ZMSCORE ZRANGE ZREVRANGE ZSCAN ZSCORE'.split(
    ' ',
  ),
)

export const isRead = ([name]: Command): boolean => READ_COMMANDS.has(name)

export const isNotSent = (outcome: unknown): outcome is StoreError =>
  outcome instanceof StoreError && outcome.code === 'ONETRIP_NOT_SENT'

const REMOVALS = new Set('DEL HDEL UNLINK ZREM ZREMRANGEBYRANK ZREMRANGEBYSCORE'.split(' '))

const SCRIPTS = new Set(['EVAL', 'EVALSHA', 'FCALL'])

/** They may have written before they failed. So may a command of a module: its name has a dot. */
const isScript = ([name]: Command) => SCRIPTS.has(name.toUpperCase()) || name.includes('.')

/**
 * Any other command that is refused did nothing, and neither did one that found nothing to remove.
 * (Without memory, Redis refuses what adds and still trims.)
 */
function mayHaveChanged(command: Command, outcome: Outcome | undefined): boolean {
  if (isRead(command) || outcome === undefined || isNotSent(outcome)) return false
  if (isRefusal(outcome)) return isScript(command)
  return !(outcome === 0 && REMOVALS.has(command[0]))
}

/**
 * The update's result, or the error that it ends with.
 *
 * @param outcomes One for each command that was sent, in order.
 * @throws StoreError `ONETRIP_REFUSED`, naming the command and its place in the update, or
 *   `ONETRIP_OUTCOME_UNKNOWN`. Whether something may have been written is told from the outcomes.
 */
export function readOutcomes<Result>(update: Update<Result>, outcomes: readonly Outcome[]): Result {
  let failed = -1
  for (let index = 0; index < outcomes.length && failed < 0; index++) {
    if (outcomes[index] instanceof Error) failed = index
  }
  if (failed < 0) {
    if (outcomes.length < update.commands.length) throw outcomeUnknown(!update.readOnly)
    return update.read(outcomes as readonly Reply[])
  }

  const mayHaveWritten =
    !update.readOnly &&
    update.commands.some((command, index) => mayHaveChanged(command, outcomes[index]))
  const lost = outcomes.find(isLost)
  if (isNotSent(lost) && !mayHaveWritten) throw lost
  if (lost) throw outcomeUnknown(mayHaveWritten, lost)
  const refusal = outcomes[failed] as Error
  const name = update.commands[failed]?.[0]
  throw new StoreError(
    'ONETRIP_REFUSED',
    `Redis refused ${name} (command ${failed + 1} of ${update.commands.length}): ${errorKind(refusal)}`,
    { mayHaveWritten, cause: refusal },
  )
}

export function notSent(why: string, cause?: unknown): StoreError {
  return new StoreError('ONETRIP_NOT_SENT', `not sent to Redis: ${why}`, { cause })
}

/** @param server The one that they are sent to, where there are several. */
export function overloaded(inFlight: number, server: string): StoreError {
  const where = server === '' ? '' : ` to ${server}`
  return new StoreError(
    'ONETRIP_OVERLOADED',
    `not sent to Redis: ${inFlight} updates are in flight${where}`,
  )
}

/** @param cause The first error that is no refusal; `node` where it is known which one owes the reply. */
function outcomeUnknown(mayHaveWritten: boolean, cause?: Error & { node?: string }): StoreError {
  const message = isNotSent(cause)
    ? `partly ${cause.message}`
    : `sent to Redis, but the reply${cause?.node === undefined ? '' : ` of ${cause.node}`} was lost`
  return new StoreError('ONETRIP_OUTCOME_UNKNOWN', message, { mayHaveWritten, cause })
}

/**
 * The error that an update ends with, published on the error channel.
 *
 * @param error Why the sender rejected. Anything but a `StoreError` may have been thrown after Redis
 *   executed the update.
 */
export function updateError(error: unknown, readOnly: boolean): StoreError {
  const known =
    error instanceof StoreError
      ? error
      : new StoreError(
          'ONETRIP_OUTCOME_UNKNOWN',
          'sending it or reading its replies failed; the cause says why',
          {
            mayHaveWritten: !readOnly,
            cause: error,
          },
        )
  publishError(known.code)
  return known
}

export const lateReply = (readOnly: boolean) =>
  new StoreError('ONETRIP_OUTCOME_UNKNOWN', 'sent to Redis, but the reply is late', {
    mayHaveWritten: !readOnly,
  })
