import { setTimeout as delay } from 'node:timers/promises'
import { parseInfo } from '@onetrip/session-store'
import { until } from '@onetrip/stack/until.ts'
import type { Redis } from 'ioredis'
import { withBackgroundLoad } from '../../drivers/redis/background-load.ts'
import { executionMicros, fillByScript } from '../../drivers/redis/commands.ts'
import { cpuDuring } from '../../drivers/redis/cost.ts'
import { generateLoad } from '../../drivers/redis/generator/load.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import { cpuBetween } from '../../drivers/redis/threads.ts'
import type { Measured } from '../../experiment/shape.ts'

export interface Bench {
  server: RedisServer
  /** For preparations and single commands. */
  redis: Redis
}

export const NOTHING = 'nothing'
export const LRANGE = 'LRANGE'
export const DELETIONS: readonly string[] = ['DEL', 'UNLINK']

/** The command that adds elements, by type of key, and the position of the number that it needs for each element. */
const writers = {
  list: ['RPUSH', 'none'],
  set: ['SADD', 'none'],
  hash: ['HSET', 'after'],
  'sorted set': ['ZADD', 'before'],
} as const

export type Type = keyof typeof writers
export const types = Object.keys(writers) as Type[]

/** The key of the list for LRANGE. */
export const READ = 'big:read'
const DELETED = 'big:deleted'

const FILL = `
local command, number = ARGV[1], ARGV[2]
local args = {}
for i = ARGV[3], ARGV[4] do
  if number == 'before' then args[#args + 1] = i end
  args[#args + 1] = 'element:' .. string.format('%.0f', i)
  if number == 'after' then args[#args + 1] = i end
  if #args >= 2000 or i == tonumber(ARGV[4]) then
    redis.call(command, KEYS[1], unpack(args))
    args = {}
  end
end`

/**
 * Creates a key with the elements `element:1`, `element:2` …
 *
 * @throws when Redis refuses a command; the reason of `signal`.
 */
export const fillKey = (
  redis: Redis,
  { key, type, elements }: { key: string; type: Type; elements: number },
  signal: AbortSignal,
): Promise<void> => fillByScript(redis, FILL, { key, args: writers[type], elements }, signal)

/** One client reads a part of the list in a loop. With 0 elements, only the background load runs. */
export async function readInLoop(
  { server, redis }: Bench,
  { elements, seconds, signal }: { elements: number; seconds: number; signal: AbortSignal },
): Promise<Measured> {
  const command = [LRANGE, READ, '0', String(elements - 1)]
  const read = async () => {
    if (elements === 0) return await delay(seconds * 1_000, null, { signal })
    return await generateLoad({
      ...{ target: server, mode: 'long', connections: 1, command, end: { seconds }, signal },
    })
  }
  await redis.config('RESETSTAT')
  const { result, background } = await withBackgroundLoad({ target: server, signal }, () =>
    cpuDuring(server, read),
  )
  const { result: load, cpu } = result
  const costs = load && {
    executionMicros: await executionMicros(redis, LRANGE),
    mainCpuMicros: (cpu.mainCpuSeconds * 1e6) / load.completed,
  }
  return {
    values: { ...costs, ...background.latency },
    errors: { ...background.errors, ...load?.errors },
  }
}

/** The background load runs this long before and after the command. */
const AROUND_MS = 200
const FREED_MS = 60_000

/** Creates a key and deletes it. */
export async function deleteOnce(
  { server, redis }: Bench,
  { command, type, elements }: { command: string; type: Type; elements: number },
  signal: AbortSignal,
): Promise<Measured> {
  await fillKey(redis, { key: DELETED, type, elements }, signal)
  await redis.config('RESETSTAT')
  const remove = async () => {
    await delay(AROUND_MS, null, { signal })
    const before = await server.cpu()
    await redis.call(command, DELETED)
    await until(() => isFreed(redis), { timeoutMs: FREED_MS, everyMs: 5, signal })
    const cpu = cpuBetween(before, await server.cpu())
    await delay(AROUND_MS, null, { signal })
    return cpu
  }
  const { result: cpu, background } = await withBackgroundLoad({ target: server, signal }, remove)
  return {
    values: {
      executionMicros: await executionMicros(redis, command),
      backgroundCpuMicros: (cpu.cpuSeconds - cpu.mainCpuSeconds) * 1e6,
      ...background.latency,
    },
    errors: background.errors,
  }
}

/** Whether the background thread has freed all deleted objects. */
async function isFreed(redis: Redis): Promise<boolean> {
  return parseInfo(await redis.info('memory')).get('lazyfree_pending_objects') === '0'
}
