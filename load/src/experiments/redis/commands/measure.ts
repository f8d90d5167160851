import { setTimeout as delay } from 'node:timers/promises'
import { parseInfo } from '@onetrip/session-store'
import { until } from '@onetrip/stack/until.ts'
import { Redis } from 'ioredis'
import { withBackgroundLoad } from '../../../drivers/redis/background-load.ts'
import { executionMicros, fillByScript } from '../../../drivers/redis/commands.ts'
import { cpuDuring, microsPer } from '../../../drivers/redis/cost.ts'
import { generateLoad } from '../../../drivers/redis/generator/load.ts'
import type { RedisServer } from '../../../drivers/redis/server.ts'
import { cpuBetween } from '../../../drivers/redis/threads.ts'
import type { Case, Measured } from '../../../rounds/shape.ts'

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

type Type = keyof typeof writers
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
  server: RedisServer,
  { key, type, elements }: { key: string; type: Type; elements: number },
  signal: AbortSignal,
): Promise<void> =>
  withClient(server, (redis) =>
    fillByScript(redis, FILL, { key, args: writers[type], elements }, signal),
  )

async function withClient<Value>(
  { socket }: RedisServer,
  work: (redis: Redis) => Promise<Value>,
): Promise<Value> {
  const redis = new Redis(socket)
  return await work(redis).finally(() => redis.disconnect())
}

/** One client sends a command in a loop, or nothing. Meanwhile, others send GETs. */
export async function loop(
  target: RedisServer,
  command: readonly string[],
  { seconds, signal }: { seconds: number; signal: AbortSignal },
): Promise<Measured> {
  const [first = ''] = command
  const send = async () => {
    if (first === NOTHING) return await delay(seconds * 1_000, null, { signal })
    return await generateLoad({
      command,
      target,
      mode: 'long',
      connections: 1,
      end: { seconds },
      signal,
    })
  }
  return await withClient(target, async (redis) => {
    await redis.config('RESETSTAT')
    const { result, background } = await withBackgroundLoad({ target, signal }, () =>
      cpuDuring(target, send),
    )
    const { result: load, cpu } = result
    const costs = load && {
      perSecond: load.completed / load.seconds,
      ...microsPer(cpu, load.completed),
      executionMicros: await executionMicros(redis, first),
    }
    return {
      values: {
        mainCpuShare: cpu.mainCpuSeconds / cpu.seconds,
        ...costs,
        ...background.latency,
      },
      errors: { ...background.errors, ...load?.errors },
    }
  })
}

/** The background load runs this long before and after the command. */
const AROUND_MS = 200
const FREED_MS = 60_000

/** Creates a key and deletes it. */
export async function deleteOnce(
  server: RedisServer,
  one: Case,
  signal: AbortSignal,
): Promise<Measured> {
  const command = String(one.command)
  const key = { key: DELETED, type: one.key as Type, elements: Number(one.elements) }
  await fillKey(server, key, signal)
  return await withClient(server, async (redis) => {
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
  })
}

/** Whether the background thread has freed all deleted objects. */
async function isFreed(redis: Redis): Promise<boolean> {
  return parseInfo(await redis.info('memory')).get('lazyfree_pending_objects') === '0'
}
