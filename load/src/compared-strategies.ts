import { createHash } from 'node:crypto'
import {
  type Command,
  type Outcome,
  publishRoundTrip,
  type Sender,
  sendWith,
} from '@onetrip/session-store'
import type { Redis } from 'ioredis'
import {
  naive,
  oneByOne,
  openPool,
  type StrategyName,
  sendingBy,
  shortConnection,
  strategyNames,
  type Target,
} from '../../apps/api/src/strategies/index.ts'

/** Ways of sending that exist only for comparison, by name. */
export const comparedStrategies: Readonly<Record<string, (target: Target) => Sender>> = {
  'naive-lean': (target) => ({ ...naive(target, leanConnection), name: 'naive-lean' }),
  'pipeline-framed': (target) => pooledBy('pipeline-framed', framed(), target),
  transaction: (target) => pooledBy('transaction', transaction, target),
  script: (target) => pooledBy('script', script, target),
}

/** The strategies of the API, and those that exist only for comparison. */
export const allStrategies = [...strategyNames, ...Object.keys(comparedStrategies)]

/** The options of a store that sends in one of these ways, or by a strategy of the API. */
export function sendingOf(name: string, target: Target) {
  const sender = comparedStrategies[name]?.(target)
  return sender ? { sender } : sendingBy(name as StrategyName, target)
}

type Send = (redis: Redis, commands: readonly Command[]) => Promise<Outcome[]>

/** Sends with `send` over shared connections. */
function pooledBy(name: string, send: Send, target: Target): Sender {
  const { next, ...pool } = openPool(target)
  return { name, send: async ({ commands }) => await send(next(), commands), ...pool }
}

/** Without the commands that ioredis sends when it connects: HELLO, CLIENT SETINFO and INFO. */
const leanConnection = (target: Target): Redis =>
  shortConnection(target, { protocol: 2, disableClientInfo: true, enableReadyCheck: false })

/** Each operation in a frame of its own, without batching. */
function framed(): Send {
  const send = sendWith()
  return (redis, commands) => {
    publishRoundTrip(commands.length)
    return send(redis, commands)
  }
}

/** All commands between MULTI and EXEC: one round trip, atomic. */
const transaction: Send = async (redis, commands) => {
  publishRoundTrip(commands.length + 2)
  const queued = redis.multi()
  for (const [name, ...args] of commands) queued.call(name, ...args)
  try {
    const results = (await queued.exec()) ?? []
    return results.map(([error, reply]) => error ?? (reply as Outcome))
  } catch (error) {
    // EXECABORT or a lost connection: all commands have the same outcome.
    const [reason = error] = (error as { previousErrors?: Error[] }).previousErrors ?? []
    return commands.map(() => reason as Error)
  }
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

/** All commands as arguments of one server-side script: one round trip. */
const script: Send = async (redis, commands) => {
  // A script cannot run another script.
  if (commands.some(([name]) => name === 'EVAL')) return await oneByOne(redis, commands)
  const keys = [...new Set(commands.map(([, key]) => String(key)))]
  const args = commands.flatMap((command) => [command.length, ...command])
  const call = async (name: string, code: string): Promise<Outcome> => {
    const command: Command = [name, code, keys.length, ...keys, ...args]
    const [outcome = null] = await oneByOne(redis, [command])
    return outcome
  }
  let outcome = await call('EVALSHA', SCRIPT_SHA)
  // NOSCRIPT: nothing was executed.
  if (outcome instanceof Error && outcome.message.startsWith('NOSCRIPT')) {
    outcome = await call('EVAL', SCRIPT)
  }
  if (Array.isArray(outcome)) return outcome as Outcome[]
  const failure = outcome instanceof Error ? outcome : new Error('the script did not return a list')
  return commands.map(() => failure)
}
