import { articleKeys, parseRedisUrl } from '@onetrip/session-store'
import { itemName } from '@onetrip/stack/measure/workload.ts'
import { messageOf } from '@onetrip/stack/problem.ts'
import { printError } from '@onetrip/stack/terminal.ts'
import { Redis } from 'ioredis'

/**
 * Removes the counts of the viewed items from a Redis that continues after the run. Never rejects.
 *
 * @param url with a user that may send ZREM; else a message says what stays.
 * @param count the items from `itemName(0)` on.
 */
export async function removeItems(url: string, count: number): Promise<void> {
  const { options } = parseRedisUrl(url)
  const redis = new Redis({ ...options, retryStrategy: null, maxRetriesPerRequest: 0 })
  redis.on('error', () => {}) // zrem() rejects, too
  const names = Array.from({ length: count }, (_, index) => itemName(index))
  try {
    await redis.zrem(articleKeys.popular(''), ...names)
  } catch (error) {
    printError(`The counts of ${names[0]} to ${names.at(-1)} stay in Redis: ${messageOf(error)}`)
  } finally {
    redis.disconnect()
  }
}
