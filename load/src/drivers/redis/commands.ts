import { parseInfo } from '@onetrip/session-store'
import type { Redis } from 'ioredis'

/** With this number of elements, a script takes well below a second. */
const PER_SCRIPT = 50_000

/**
 * Adds many elements to a key with a Lua script, in several calls. The last two arguments of a call are the first and
 * the last number of its elements, which start at 1.
 *
 * @param fill `args`: the arguments before these two.
 * @throws when Redis refuses a command; the reason of `signal`.
 */
export async function fillByScript(
  redis: Redis,
  script: string,
  fill: { key: string; args: readonly string[]; elements: number },
  signal: AbortSignal,
): Promise<void> {
  const { key, args, elements } = fill
  for (let from = 1; from <= elements; from += PER_SCRIPT) {
    signal.throwIfAborted()
    await redis.eval(script, 1, key, ...args, from, Math.min(elements, from + PER_SCRIPT - 1))
  }
}

/** The mean execution time of a command since the last `CONFIG RESETSTAT`, in microseconds; null without a call. */
export async function executionMicros(redis: Redis, command: string): Promise<number | null> {
  const stats = parseInfo(await redis.info('commandstats')).get(`cmdstat_${command.toLowerCase()}`)
  const [, calls = 0, micros = 0] = /^calls=(\d+),usec=(\d+)/.exec(stats ?? '')?.map(Number) ?? []
  return calls > 0 ? micros / calls : null
}
