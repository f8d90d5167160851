import type { Redis } from 'ioredis'
import { publishRoundTrip } from './diagnostics.ts'
import { StoreError } from './errors.ts'
import type { Command, Reply, Update } from './updates.ts'

/** Either what Redis replied to a command or why there is no reply. */
type Outcome = { reply: Reply } | { error: Error }

const isRefusal = (error: Error) => error.name === 'ReplyError'

const READ_COMMANDS = new Set(['HGET', 'ZSCORE', 'ZRANGE', 'ZREVRANGE', 'PING'])

/**
 * The replies, or the error that the update ends with.
 *
 * @throws StoreError `ONETRIP_REFUSED`, naming the command and its place in the update, or
 *   `ONETRIP_OUTCOME_UNKNOWN`. Whether something may have been written is told from the replies.
 */
function readOutcomes<Result>(update: Update<Result>, outcomes: readonly Outcome[]): Result {
  const failed = outcomes.findIndex((outcome) => 'error' in outcome)
  const failure = outcomes[failed]
  if (failure === undefined || !('error' in failure)) {
    return update.read(outcomes.map((outcome) => ('reply' in outcome ? outcome.reply : null)))
  }
  const mayHaveWritten = update.commands.some((command, index) => {
    const outcome = outcomes[index]
    const notExecuted = outcome === undefined || ('error' in outcome && isRefusal(outcome.error))
    return !notExecuted && !READ_COMMANDS.has(command[0])
  })
  const lost = outcomes.find((outcome) => 'error' in outcome && !isRefusal(outcome.error))
  if (lost && 'error' in lost) throw outcomeUnknown(mayHaveWritten, lost.error)
  const name = update.commands[failed]?.[0]
  throw new StoreError(
    'ONETRIP_REFUSED',
    // Redis's message may quote an argument; its first word is the kind of error.
    `Redis refused ${name} (command ${failed + 1} of ${update.commands.length}): ${failure.error.message.split(' ', 1)}`,
    { mayHaveWritten, cause: failure.error },
  )
}

export function notSent(why: string, cause?: unknown): StoreError {
  return new StoreError('ONETRIP_NOT_SENT', `not sent to Redis: ${why}`, { cause })
}

export function overloaded(inFlight: number): StoreError {
  return new StoreError(
    'ONETRIP_OVERLOADED',
    `not sent to Redis: ${inFlight} updates are in flight`,
  )
}

function outcomeUnknown(mayHaveWritten: boolean, cause?: unknown): StoreError {
  return new StoreError('ONETRIP_OUTCOME_UNKNOWN', 'sent to Redis, but the reply was lost', {
    mayHaveWritten,
    cause,
  })
}

const lateReply = (readOnly: boolean) =>
  new StoreError('ONETRIP_OUTCOME_UNKNOWN', 'sent to Redis, but the reply is late', {
    mayHaveWritten: !readOnly,
  })

/** Sends all commands at once, as one non-transactional pipeline: one round trip. */
export async function sendPipeline<Result>(redis: Redis, update: Update<Result>): Promise<Result> {
  const pipeline = redis.pipeline()
  for (const [name, ...args] of update.commands) pipeline.call(name, ...args)
  publishRoundTrip(update.commands.length)
  const replies = await pipeline.exec()
  return readOutcomes(
    update,
    (replies ?? []).map(([error, reply]) => (error ? { error } : { reply: reply as Reply })),
  )
}

/** Sends one command after the other, each when the reply to the one before is there. */
export async function sendOneByOne<Result>(redis: Redis, update: Update<Result>): Promise<Result> {
  const outcomes: Outcome[] = []
  for (const command of update.commands) {
    const outcome = await sendCommand(redis, command)
    outcomes.push(outcome)
    // After a lost reply nothing more is sent; a refused command does not stop a pipeline either.
    if ('error' in outcome && !isRefusal(outcome.error)) break
  }
  return readOutcomes(update, outcomes)
}

async function sendCommand(redis: Redis, [name, ...args]: Command): Promise<Outcome> {
  publishRoundTrip(1)
  try {
    return { reply: (await redis.call(name, ...args)) as Reply }
  } catch (error) {
    return { error: error as Error }
  }
}

/**
 * The result of `work`, or an error as soon as `deadlineMs` have passed. The work itself goes on: it
 * counts as in flight until its replies are there or its connection has ended.
 *
 * @throws StoreError `ONETRIP_OUTCOME_UNKNOWN`.
 */
export function withDeadline<Result>(
  work: Promise<Result>,
  deadlineMs: number,
  readOnly: boolean,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(lateReply(readOnly)), deadlineMs)
    work.then(
      (result) => {
        clearTimeout(timer)
        resolve(result)
      },
      (error: unknown) => {
        clearTimeout(timer)
        reject(error as Error)
      },
    )
  })
}
