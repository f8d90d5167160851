import { createSessionStore, parseInfo } from '@onetrip/session-store'
import { partitionedKeys } from '@onetrip/session-store/cluster'
import { itemName } from '@onetrip/stack/measure/workload.ts'
import { newSecret } from '@onetrip/stack/places.ts'
import { Redis } from 'ioredis'
import { startCluster } from '../../drivers/redis/cluster.ts'
import type { RedisServer } from '../../drivers/redis/server.ts'
import type { Context } from '../../experiment/experiment.ts'
import type { Case, Measured } from '../../experiment/shape.ts'

export interface MemoryBench {
  server: RedisServer
  redis: Redis
}

/** Items viewed by each session of a large data set. */
export const VIEWED = 5

export async function startMemory(context: Context): Promise<MemoryBench> {
  const [server] = await startCluster(context, 1, { maxmemory: '0' })
  if (!server) throw new RangeError('the cluster has no node')
  const redis = new Redis(server.socket)
  context.defer(() => redis.disconnect())
  return { server, redis }
}

/** Fills an empty Redis, and measures the growth of its memory. */
export async function measureMemory(
  { server, redis }: MemoryBench,
  { sessions, items, dataBytes }: Case,
  { partitions, signal }: { partitions: number; signal: AbortSignal },
): Promise<Measured> {
  const shape = { sessions: Number(sessions), items: Number(items), dataBytes: Number(dataBytes) }
  await redis.flushall('SYNC')
  const before = await memoryOf(redis)
  await fillStore(shape, server.url, partitions, signal)
  const after = await memoryOf(redis)
  const bytes = after.used - before.used
  return {
    values: { bytes, perSession: bytes / shape.sessions, resident: after.resident / after.used },
  }
}

async function memoryOf(redis: Redis): Promise<{ used: number; resident: number }> {
  const info = parseInfo(await redis.info('memory'))
  const number = (name: string) => Number(info.get(name))
  return { used: number('used_memory'), resident: number('used_memory_rss') }
}

const IN_FLIGHT = 256
/** The number of different items, unless a session views more. */
const ITEMS = 1_000

/**
 * Logs users in, records views and writes data with the store's own calls, so that keys, encodings and lengths are
 * those of real sessions: ids have 32 characters, names of users about 10, names of items about 13.
 *
 * @throws the error of a call; the reason of the signal.
 */
async function fillStore(
  { sessions, items, dataBytes }: { sessions: number; items: number; dataBytes: number },
  url: string,
  partitions: number,
  signal: AbortSignal,
): Promise<void> {
  const store = createSessionStore({
    url,
    keys: partitionedKeys(partitions),
    tokens: { secrets: [newSecret()] },
    janitor: 'elsewhere',
    deadlineMs: 60_000,
  })
  // JSON adds two quotes.
  const basket = dataBytes > 0 ? 'x'.repeat(Math.max(0, dataBytes - 2)) : null
  let next = 0
  const fill = async () => {
    for (let number = next++; number < sessions; number = next++) {
      signal.throwIfAborted()
      const { token } = await store.login(`user-${number}`)
      for (let view = 0; view < items; view++) {
        const item = number * items + view
        await store.recordView(token, itemName(items > ITEMS ? item : item % ITEMS))
      }
      if (basket !== null) await store.patch(token, { basket })
    }
  }
  try {
    await store.ready()
    await Promise.all(Array.from({ length: Math.min(IN_FLIGHT, sessions) }, fill))
  } finally {
    await store.close()
  }
}
