import { createClient } from 'redis'
import { run } from './support/run.ts'

await run({
  async 'node-redis'({ url }) {
    const redis = await createClient({ url }).on('error', console.error).connect()
    return async ({ id }, item) => {
      const score = Date.now() / 1_000
      const [, , , , user] = await redis
        .multi()
        .zAdd('recent:', { score, value: id }, { condition: 'XX' })
        .zAdd(`viewed:${id}`, { score, value: item })
        .zRemRangeByRank(`viewed:${id}`, 0, -26)
        .zIncrBy('viewed:', -1, item)
        .hGet('login:', id)
        .execAsPipelineTyped()
      return user
    }
  },

  // Calls of one event-loop turn are pipelined automatically.
  async 'node-redis-auto'({ url }) {
    const redis = await createClient({ url }).on('error', console.error).connect()
    return async ({ id }, item) => {
      const score = Date.now() / 1_000
      const [, , , , user] = await Promise.all([
        redis.zAdd('recent:', { score, value: id }, { condition: 'XX' }),
        redis.zAdd(`viewed:${id}`, { score, value: item }),
        redis.zRemRangeByRank(`viewed:${id}`, 0, -26),
        redis.zIncrBy('viewed:', -1, item),
        redis.hGet('login:', id),
      ])
      return user
    }
  },
})
