import { createHash } from 'node:crypto'
import { sendPerNode, sendToNode } from '../../cluster/nodes.ts'
import { type Client, isCluster } from '../connections/client.ts'
import { publishRoundTrip } from '../diagnostics.ts'
import { type Command, keysOf, type Reply } from '../operations.ts'
import { errorKind, isRefusal, notSent, type OnArrival, type Outcome } from '../outcomes.ts'

/** How commands are sent over a connection. */
export interface Wire {
  readonly name: string
  /** Resolves with outcomes as `Sender.send` does. Rejects only with a `StoreError`. */
  send(client: Client, commands: readonly Command[], onArrival?: OnArrival): Promise<Outcome[]>
}

/** Converts what ioredis's `exec` returns; null after an aborted transaction. */
const outcomesOf = (results: [error: Error | null, reply: unknown][] | null): Outcome[] =>
  (results ?? []).map(([error, reply]) => error ?? (reply as Reply))

/** All commands as one non-transactional pipeline: one round trip. */
export const pipeline: Wire = {
  name: 'pipeline',
  async send(client, commands, onArrival) {
    publishRoundTrip(commands.length)
    if (isCluster(client)) return await sendPerNode(client, commands, onArrival)
    const queued = client.pipeline()
    for (const [name, ...args] of commands) queued.call(name, ...args)
    return outcomesOf(await queued.exec())
  },
}

/** One command at a time; each waits for the reply to the one before. */
export const oneByOne: Wire = {
  name: 'one by one',
  async send(client, commands) {
    const outcomes: Outcome[] = []
    for (const command of commands) {
      const outcome = await sendCommand(client, command)
      outcomes.push(outcome)
      // Stops after a lost reply, but not after an error reply: that does not stop a pipeline either.
      if (outcome instanceof Error && !isRefusal(outcome)) {
        if (outcomes.length < commands.length) outcomes.push(notSent('an earlier reply was lost'))
        break
      }
    }
    return outcomes
  },
}

/** All commands between MULTI and EXEC: one round trip, atomic. */
export const transaction: Wire = {
  name: 'transaction',
  async send(client, commands) {
    publishRoundTrip(commands.length + 2)
    const queued = client.multi()
    for (const [name, ...args] of commands) queued.call(name, ...args)
    try {
      return outcomesOf(await queued.exec())
    } catch (error) {
      // EXECABORT or a lost connection: all commands have the same outcome.
      const [reason = error] = (error as { previousErrors?: Error[] }).previousErrors ?? []
      return commands.map(() => reason as Error)
    }
  },
}

/** KEYS: the keys of the commands. ARGV: length, name and arguments of each command. */
const SCRIPT = `
local replies, at = {}, 1
while at <= #ARGV do
  local length = tonumber(ARGV[at])
  replies[#replies + 1] = redis.pcall(unpack(ARGV, at + 1, at + length))
  at = at + length + 1
end
return replies`

const SCRIPT_SHA = createHash('sha1').update(SCRIPT).digest('hex')

/** All commands as arguments of one server-side script: one round trip. For comparison only. */
export const script: Wire = {
  name: 'script',
  async send(client, commands) {
    // A script cannot run another script.
    if (commands.some(([name]) => name === 'EVAL')) return await oneByOne.send(client, commands)
    const keys = [...new Set(commands.flatMap((command) => keysOf(command)))]
    const args = commands.flatMap((command) => [command.length, ...command])
    let outcome = await sendCommand(client, ['EVALSHA', SCRIPT_SHA, keys.length, ...keys, ...args])
    // NOSCRIPT: nothing was executed.
    if (outcome instanceof Error && errorKind(outcome) === 'NOSCRIPT') {
      outcome = await sendCommand(client, ['EVAL', SCRIPT, keys.length, ...keys, ...args])
    }
    if (Array.isArray(outcome)) return outcome as Outcome[]
    const failure =
      outcome instanceof Error ? outcome : new Error('the script did not return a list')
    return commands.map(() => failure)
  },
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
