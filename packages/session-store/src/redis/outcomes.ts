import type { Command, Operation, Reply } from '../command.ts'
import { publishError } from '../diagnostics.ts'
import { StoreError } from '../errors.ts'

/** The result of one command: Redis's reply, or an error. */
export type Outcome = Reply | Error

/** Whether Redis replied with an error. Any other error means that the reply was lost. */
export const isRefusal = (outcome: Outcome): outcome is Error =>
  outcome instanceof Error && outcome.name === 'ReplyError'

/** The first word of Redis's error, such as `WRONGTYPE` or `MOVED`. The rest may quote an argument. */
export const errorKind = ({ message }: Error): string => message.split(' ', 1)[0] ?? ''

/** Whether the sender knows that the server executed nothing, not even of a script, and that waiting may help. */
export const isTemporary = (outcome: unknown): boolean =>
  outcome instanceof Error && Reflect.get(outcome, 'temporary') === true

/** Whether the reply was lost, or the command was not sent. */
const isLost = (outcome: Outcome): outcome is Error =>
  outcome instanceof Error && !isRefusal(outcome)

/**
 * Adds the outcomes that a sender has omitted: they count as lost, or as not sent if the last command that has an
 * outcome was not sent.
 */
export function withOmitted(outcomes: readonly Outcome[], count: number): readonly Outcome[] {
  if (outcomes.length >= count) return outcomes
  const last = outcomes.at(-1)
  const missing =
    last !== undefined && isLost(last)
      ? last
      : new Error('the sender returned no outcome for this command')
  return [...outcomes, ...new Array<Outcome>(count - outcomes.length).fill(missing)]
}

const READ_COMMANDS = new Set(
  'BITCOUNT HGET HGETALL HMGET HSCAN PING PUBLISH SCAN TYPE ZCARD ZMSCORE ZRANGE ZREVRANGE ZSCAN ZSCORE'.split(
    ' ',
  ),
)

/** Whether a command changes nothing, so that it can be sent again. */
export const isRead = ([name]: Command): boolean => READ_COMMANDS.has(name)

export const isNotSent = (outcome: unknown): outcome is StoreError =>
  outcome instanceof StoreError && outcome.code === 'ONETRIP_NOT_SENT'

const REMOVALS = new Set('DEL HDEL UNLINK ZREM ZREMRANGEBYRANK ZREMRANGEBYSCORE'.split(' '))

const SCRIPTS = new Set(['EVAL', 'EVALSHA', 'FCALL'])

/** Scripts and commands of modules (whose names have a dot) may write before they fail. */
const mayWriteBeforeFailing = ([name]: Command) =>
  SCRIPTS.has(name.toUpperCase()) || name.includes('.')

/** After the first write of a script, Redis no longer refuses any of its commands for these reasons. */
const BEFORE_FIRST_WRITE = new Set(
  'BUSY LOADING MASTERDOWN MISCONF NOREPLICAS OOM READONLY'.split(' '),
)

/** Not if the script may catch the error, write, and return it, or may return such an error of its own. */
const isRefusedScript = ([name, text]: Command, refusal: Error): boolean =>
  name.toUpperCase() === 'EVAL' &&
  BEFORE_FIRST_WRITE.has(errorKind(refusal)) &&
  !/pcall|err/.test(String(text))

/**
 * Any other command that failed wrote nothing, and neither did a removal that found nothing to remove.
 * (When memory is full, Redis refuses commands that add and still executes removals.)
 */
function mayHaveChanged(command: Command, outcome: Outcome): boolean {
  if (isRead(command) || isNotSent(outcome)) return false
  if (isRefusal(outcome)) {
    if (isTemporary(outcome) || isRefusedScript(command, outcome)) return false
    return mayWriteBeforeFailing(command)
  }
  return !(outcome === 0 && REMOVALS.has(command[0]))
}

/**
 * Returns the result of an operation, or throws its error.
 *
 * @param returned One for each command, in order. The sender may have omitted the last ones.
 * @throws StoreError `ONETRIP_REFUSED`, naming the command and its position in the operation, or
 *   `ONETRIP_OUTCOME_UNKNOWN`. `mayHaveWritten` is derived from the outcomes.
 */
export function readOutcomes<Result>(
  operation: Operation<Result>,
  returned: readonly Outcome[],
): Result {
  const outcomes = withOmitted(returned, operation.commands.length)
  let failed = -1
  for (let index = 0; index < outcomes.length && failed < 0; index++) {
    if (outcomes[index] instanceof Error) failed = index
  }
  if (failed < 0) return operation.read(outcomes as readonly Reply[])

  const mayHaveWritten =
    !operation.readOnly &&
    operation.commands.some((command, index) => mayHaveChanged(command, outcomes[index] ?? null))
  const lost = outcomes.find(isLost)
  if (isNotSent(lost) && !mayHaveWritten) throw lost
  if (lost) throw outcomeUnknown(mayHaveWritten, lost)
  const refusal = outcomes[failed] as Error
  const name = operation.commands[failed]?.[0]
  throw new StoreError(
    'ONETRIP_REFUSED',
    `Redis refused ${name} (command ${failed + 1} of ${operation.commands.length}): ${errorKind(refusal)}`,
    { mayHaveWritten, cause: refusal },
  )
}

export function notSent(why: string, cause?: unknown): StoreError {
  return new StoreError('ONETRIP_NOT_SENT', `not sent to Redis: ${why}`, { cause })
}

export function overloaded(inFlight: number): StoreError {
  return new StoreError(
    'ONETRIP_OVERLOADED',
    `not sent to Redis: ${inFlight} operations are in flight, the maximum (maxInFlight)`,
  )
}

/** @param cause The first error that is not a reply; `node` if the node that did not reply is known. */
function outcomeUnknown(mayHaveWritten: boolean, cause: Error & { node?: string }): StoreError {
  const message = isNotSent(cause)
    ? `some commands were ${cause.message}`
    : `sent to Redis, but the reply${cause.node === undefined ? '' : ` from ${cause.node}`} was lost`
  return new StoreError('ONETRIP_OUTCOME_UNKNOWN', message, { mayHaveWritten, cause })
}

/**
 * Converts an error to a `StoreError` and publishes its code on the error channel.
 *
 * @param error What the sender threw. Anything but a `StoreError` may have been thrown after Redis
 *   executed the operation.
 */
export function operationError(error: unknown, readOnly: boolean): StoreError {
  const known =
    error instanceof StoreError
      ? error
      : new StoreError(
          'ONETRIP_OUTCOME_UNKNOWN',
          'sending the operation or reading its replies failed; see the cause',
          {
            mayHaveWritten: !readOnly,
            cause: error,
          },
        )
  publishError(known.code)
  return known
}

export const lateReply = (readOnly: boolean) =>
  new StoreError('ONETRIP_OUTCOME_UNKNOWN', 'sent to Redis, but no reply before the deadline', {
    mayHaveWritten: !readOnly,
  })
