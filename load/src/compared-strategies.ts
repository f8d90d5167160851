import { createHash } from 'node:crypto'
import { type Command, type Outcome, type Sender, safeRedisOptions } from '@onetrip/session-store'
import { type RedisOptions, redisAddress } from '@onetrip/stack/address.ts'
import { Redis } from 'ioredis'
import { keysOf } from '../../packages/session-store/src/command.ts'
import { publishRoundTrip } from '../../packages/session-store/src/diagnostics.ts'
import { serverAt } from '../../packages/session-store/src/redis/client.ts'
import { framedWhere } from '../../packages/session-store/src/redis/frame.ts'
import { errorKind } from '../../packages/session-store/src/redis/outcomes.ts'
import { pooled } from '../../packages/session-store/src/redis/pool.ts'
import { shortConnections } from '../../packages/session-store/src/redis/short-connections.ts'
import { oneByOne, type Wire } from '../../packages/session-store/src/redis/wires.ts'

interface Target {
  url: string
  poolSize: number
  deadlineMs: number
}

/** Ways of sending that exist only for comparison, by name. */
export const comparedStrategies: Readonly<Record<string, (target: Target) => Sender>> = {
  'naive-lean': ({ url, deadlineMs }) =>
    shortConnections({ ...serverAt({ url }), short: (ms) => leanConnection(url, ms) }, deadlineMs),
  'pipeline-framed': (target) => pooled(framedWhere([]), onPool(target)),
  transaction: (target) => pooled(transaction, onPool(target)),
  script: (target) => pooled(script, onPool(target)),
}

const onPool = ({ url, ...limits }: Target) => ({
  server: serverAt({ url }),
  clients: [],
  ...limits,
})

/** Without the commands that ioredis sends when it connects: HELLO, CLIENT SETINFO and INFO. */
function leanConnection(url: string, connectTimeout: number): Redis {
  const options: RedisOptions = {
    ...redisAddress(url).options,
    ...safeRedisOptions,
    protocol: 2,
    disableClientInfo: true,
    enableReadyCheck: false,
    lazyConnect: true,
    connectTimeout,
    retryStrategy: null,
  }
  return new Redis(options)
}

/** All commands between MULTI and EXEC: one round trip, atomic. */
const transaction: Wire = {
  name: 'transaction',
  async send(redis, commands) {
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

/** All commands as arguments of one server-side script: one round trip. */
const script: Wire = {
  name: 'script',
  async send(redis, commands) {
    // A script cannot run another script.
    if (commands.some(([name]) => name === 'EVAL')) return await oneByOne.send(redis, commands)
    const keys = [...new Set(commands.flatMap((command) => keysOf(command)))]
    const args = commands.flatMap((command) => [command.length, ...command])
    const call = async (name: string, code: string): Promise<Outcome> => {
      const command: Command = [name, code, keys.length, ...keys, ...args]
      const [outcome = null] = await oneByOne.send(redis, [command])
      return outcome
    }
    let outcome = await call('EVALSHA', SCRIPT_SHA)
    // NOSCRIPT: nothing was executed.
    if (outcome instanceof Error && errorKind(outcome) === 'NOSCRIPT') {
      outcome = await call('EVAL', SCRIPT)
    }
    if (Array.isArray(outcome)) return outcome as Outcome[]
    const failure =
      outcome instanceof Error ? outcome : new Error('the script did not return a list')
    return commands.map(() => failure)
  },
}
