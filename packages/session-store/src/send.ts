import { createHash } from 'node:crypto'
import { type Client, isCluster } from './client.ts'
import { sendPerNode, sendToNode } from './cluster.ts'
import { publishRoundTrip } from './diagnostics.ts'
import { isRefusal, lateReply, type Outcome } from './outcomes.ts'
import { type Command, keysOf, type Reply } from './updates.ts'

/**
 * A way of putting commands on the wire. Resolves with one outcome for each command that was sent;
 * rejects only with a `StoreError`.
 */
export type Send = (client: Client, commands: readonly Command[]) => Promise<Outcome[]>

/** Sends all commands at once, as one non-transactional pipeline: one round trip. */
export const sendPipeline: Send = async (client, commands) => {
  publishRoundTrip(commands.length)
  if (isCluster(client)) return await sendPerNode(client, commands)
  const pipeline = client.pipeline()
  for (const [name, ...args] of commands) pipeline.call(name, ...args)
  const replies = await pipeline.exec()
  return (replies ?? []).map(([error, reply]) => error ?? (reply as Reply))
}

/** Sends one command after the other, each when the reply to the one before is there. */
export const sendOneByOne: Send = async (client, commands) => {
  const outcomes: Outcome[] = []
  for (const command of commands) {
    const outcome = await sendCommand(client, command)
    outcomes.push(outcome)
    // After a lost reply nothing more is sent; a refused command does not stop a pipeline either.
    if (outcome instanceof Error && !isRefusal(outcome)) break
  }
  return outcomes
}

/** Sends all commands at once between MULTI and EXEC: one round trip, all of them or none. */
export const sendTransaction: Send = async (client, commands) => {
  publishRoundTrip(commands.length + 2)
  const transaction = client.multi()
  for (const [name, ...args] of commands) transaction.call(name, ...args)
  try {
    const replies = await transaction.exec()
    return (replies ?? []).map(([error, reply]) => error ?? (reply as Reply))
  } catch (error) {
    // EXECABORT, or the connection was lost: the same became of all of them.
    const [reason = error] = (error as { previousErrors?: Error[] }).previousErrors ?? []
    return commands.map(() => reason as Error)
  }
}

/** KEYS: the keys of the commands. ARGV: for each command its length, its name and its arguments. */
const SCRIPT = `
local replies, at = {}, 1
while at <= #ARGV do
  local length = tonumber(ARGV[at])
  replies[#replies + 1] = redis.pcall(unpack(ARGV, at + 1, at + length))
  at = at + length + 1
end
return replies`

const SCRIPT_SHA = createHash('sha1').update(SCRIPT).digest('hex')

/** Sends all commands as arguments of one script on the server: one round trip, for comparison. */
export const sendScript: Send = async (client, commands) => {
  // A script cannot run another one.
  if (commands.every(([name]) => name === 'EVAL')) return await sendOneByOne(client, commands)
  const keys = [...new Set(commands.flatMap((command) => keysOf(command)))]
  const args = commands.flatMap((command) => [command.length, ...command])
  let outcome = await sendCommand(client, ['EVALSHA', SCRIPT_SHA, keys.length, ...keys, ...args])
  // A server that does not know the script has done nothing.
  if (outcome instanceof Error && outcome.message.startsWith('NOSCRIPT')) {
    outcome = await sendCommand(client, ['EVAL', SCRIPT, keys.length, ...keys, ...args])
  }
  if (Array.isArray(outcome)) return outcome as Outcome[]
  const failure = outcome instanceof Error ? outcome : new Error('the script replied with no list')
  return commands.map(() => failure)
}

export async function sendCommand(client: Client, command: Command): Promise<Outcome> {
  publishRoundTrip(1)
  if (isCluster(client)) return await sendToNode(client, command)
  const [name, ...args] = command
  try {
    return (await client.call(name, ...args)) as Reply
  } catch (error) {
    return error as Error
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
