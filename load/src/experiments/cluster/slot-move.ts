import { setTimeout as delay } from 'node:timers/promises'
import { partitionedKeys } from '@onetrip/cluster'
import { parseInfo } from '@onetrip/session-store'
import { Redis } from 'ioredis'
import { executionMicros, fillByScript } from '../../drivers/redis/commands.ts'
import type { Case, Measured } from '../../rounds/shape.ts'
import type { Context } from '../experiment.ts'

interface Node {
  port: number
  redis: Redis
  /** The connection that sends PING during the move. */
  other: Redis
}

export interface Pair {
  source: Node
  target: Node
}

const [part] = partitionedKeys(1).parts()
/** The two keys of a partition that grow with its sessions, and the commands that add members. */
export const keys: Readonly<Record<string, readonly [key: string, command: string]>> = {
  'login (hash)': [part?.login ?? '', 'HSET'],
  'recent (sorted set)': [part?.recent ?? '', 'ZADD'],
}

/** Starts two servers. @param queryBuffer their client-query-buffer-limit. */
export async function startPair(context: Context, queryBuffer: string): Promise<Pair> {
  const config = { maxmemory: '0', appendonly: 'yes', 'client-query-buffer-limit': queryBuffer }
  const start = async (): Promise<Node> => {
    const { port, socket } = await context.startRedis({ build: 'patched', config })
    const [redis, other] = [new Redis(socket), new Redis(socket)]
    context.defer(() => [redis, other].forEach((client) => void client.disconnect()))
    return { port, redis, other }
  }
  return { source: await start(), target: await start() }
}

const FILL = `
local args = {}
for i = ARGV[2], ARGV[3] do
  local id = string.sub(redis.sha1hex(i), 1, 32)
  if ARGV[1] == 'HSET' then
    args[#args + 1] = id
    args[#args + 1] = 'user-' .. string.format('%.0f', i)
  else
    args[#args + 1] = string.format('%.3f', 1700000000 + i / 1000)
    args[#args + 1] = id
  end
  if #args >= 2000 or i == tonumber(ARGV[3]) then
    redis.call(ARGV[1], KEYS[1], unpack(args))
    args = {}
  end
end`

/** PINGs are sent this long before and after the move. */
const AROUND_MS = 100
/** The timeout of MIGRATE, far longer than the largest key needs. */
const MIGRATE_TIMEOUT_MS = 600_000

/** Fills a key of the source and moves it to the target. */
export async function moveKey(
  { source, target }: Pair,
  { key: name, sessions }: Case,
  signal: AbortSignal,
): Promise<Measured> {
  const [key = '', command = ''] = keys[String(name)] ?? []
  for (const { redis } of [source, target]) await redis.flushall('SYNC')
  const fill = { key, args: [command], elements: Number(sessions) }
  await fillByScript(source.redis, FILL, fill, signal)
  for (const { redis } of [source, target]) await redis.config('RESETSTAT')
  const done = new AbortController()
  const longest = [source, target].map(({ other }) => longestPing(other, done.signal))
  await delay(AROUND_MS)
  const error = await source.redis
    .migrate('127.0.0.1', target.port, key, 0, MIGRATE_TIMEOUT_MS)
    .then(() => null)
    .catch((reason: Error) => reason)
  await delay(AROUND_MS)
  done.abort()
  const [sourceMs = null, targetMs = null] = await Promise.all(longest)
  if (error) return { values: {}, errors: { refused: 1 }, details: { error: error.message } }
  const info = parseInfo(await target.redis.info('stats'))
  return {
    values: {
      sourceMs,
      targetMs,
      migrateMs: await executionMs(source.redis, 'migrate'),
      restoreMs: await executionMs(target.redis, 'restore'),
      megabytes: Number(info.get('total_net_input_bytes')) / 1e6,
    },
  }
}

/** The latency of the longest PING in milliseconds. */
async function longestPing(redis: Redis, signal: AbortSignal): Promise<number> {
  let longest = 0
  while (!signal.aborted) {
    const begun = performance.now()
    await redis.ping()
    longest = Math.max(longest, performance.now() - begun)
    await delay(1)
  }
  return longest
}

/** Execution time of the only call of a command since the last `CONFIG RESETSTAT`. */
async function executionMs(redis: Redis, command: string): Promise<number | null> {
  const micros = await executionMicros(redis, command)
  return micros === null ? null : micros / 1_000
}
