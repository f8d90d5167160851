import type { Sender } from '@onetrip/session-store'
import type { Redis } from 'ioredis'
import { serverAt } from '../../../../packages/session-store/src/core/connections/client.ts'
import { disconnect } from '../../../../packages/session-store/src/core/sending/pool.ts'
import { ShortConnections } from '../../../../packages/session-store/src/core/sending/short-connections.ts'
import { pipeline } from '../../../../packages/session-store/src/core/sending/wires.ts'

export interface Target {
  url: string
  poolSize: number
  deadlineMs: number
}

/**
 * A pool like that of Jedis: a caller borrows a connection for one pipeline, and no other caller uses it meanwhile.
 *
 * @param exhausted what a caller does if no connection is free: wait for its turn, or open one for this pipeline.
 */
export function exclusivePool(
  { url, poolSize, deadlineMs }: Target,
  exhausted: 'wait' | 'open',
): Sender {
  const server = serverAt({ url })
  const short = new ShortConnections<Redis>(deadlineMs, (redis) => redis.quit())
  const all = Array.from({ length: poolSize }, () => server.shared(deadlineMs))
  const free: Redis[] = []
  const waiting: ((redis: Redis) => void)[] = []

  function giveBack(redis: Redis): void {
    const next = waiting.shift()
    if (next) next(redis)
    else free.push(redis)
  }

  for (const redis of all) {
    redis.on('error', () => {}) // the commands fail, too
    redis.connect().then(
      () => giveBack(redis),
      () => {},
    )
  }
  return {
    name: pipeline.name,
    async send({ commands }) {
      const borrowed = free.pop()
      if (!borrowed && exhausted === 'open') {
        const redis = server.short(deadlineMs)
        return await short.use(redis, () => pipeline.send(redis, commands))
      }
      const redis = borrowed ?? (await new Promise<Redis>((resolve) => waiting.push(resolve)))
      try {
        return await pipeline.send(redis, commands)
      } finally {
        giveBack(redis)
      }
    },
    async close() {
      short.close()
      await Promise.all(all.map(disconnect))
    },
  }
}
