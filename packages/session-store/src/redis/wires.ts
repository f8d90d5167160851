import type { Redis } from 'ioredis'
import type { Command, Reply } from '../command.ts'
import { publishRoundTrip } from '../diagnostics.ts'
import { isRefusal, notSent, type Outcome } from './outcomes.ts'

/** How commands are sent over a connection. */
export interface Wire {
  readonly name: string
  /** Resolves with outcomes as `Sender.send` does. Rejects only with a `StoreError`. */
  send(redis: Redis, commands: readonly Command[]): Promise<Outcome[]>
}

/** All commands as one non-transactional pipeline: one round trip. */
export const pipeline: Wire = {
  name: 'pipeline',
  send(redis, commands) {
    publishRoundTrip(commands.length)
    return sendPipeline(redis, commands)
  },
}

export const sendPipeline: Wire['send'] = async (redis, commands) => {
  const queued = redis.pipeline()
  for (const [name, ...args] of commands) queued.call(name, ...args)
  const results = (await queued.exec()) ?? []
  return results.map(([error, reply]) => error ?? (reply as Reply))
}

/** One command at a time; each waits for the reply to the one before. */
export const oneByOne: Wire = {
  name: 'one by one',
  send: (redis, commands) => inSequence(commands, (command) => sendCommand(redis, command)),
}

/** Stops after a lost reply, but not after an error reply: that does not stop a pipeline either. */
export async function inSequence(
  commands: readonly Command[],
  send: (command: Command) => Promise<Outcome>,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  for (const command of commands) {
    publishRoundTrip(1)
    const outcome = await send(command)
    outcomes.push(outcome)
    if (outcome instanceof Error && !isRefusal(outcome)) {
      if (outcomes.length < commands.length) outcomes.push(notSent('an earlier reply was lost'))
      break
    }
  }
  return outcomes
}

async function sendCommand(redis: Redis, [name, ...args]: Command): Promise<Outcome> {
  try {
    return (await redis.call(name, ...args)) as Reply
  } catch (error) {
    return error as Error
  }
}
