import { Redis } from 'ioredis'
import { Redis as Valkey } from 'iovalkey'
import { run, type View } from './support/run.ts'

function pipelined(redis: Redis): View {
  return async ({ id }, item) => {
    const now = Date.now() / 1_000
    const replies = await redis
      .pipeline()
      .zadd('recent:', 'XX', now, id)
      .zadd(`viewed:${id}`, now, item)
      .zremrangebyrank(`viewed:${id}`, 0, -26)
      .zincrby('viewed:', -1, item)
      .hget('login:', id)
      .exec()
    for (const [error] of replies ?? []) if (error) throw error
    return replies?.[4]?.[1]
  }
}

await run({
  ioredis: ({ url }) => pipelined(new Redis(url)),
  // A fork of ioredis 5 with the same functions, and types of its own.
  iovalkey: ({ url }) => pipelined(new Valkey(url) as unknown as Redis),

  'ioredis-auto'({ url }) {
    const redis = new Redis(url, { enableAutoPipelining: true })
    return async ({ id }, item) => {
      const now = Date.now() / 1_000
      const [, , , , user] = await Promise.all([
        redis.zadd('recent:', 'XX', now, id),
        redis.zadd(`viewed:${id}`, now, item),
        redis.zremrangebyrank(`viewed:${id}`, 0, -26),
        redis.zincrby('viewed:', -1, item),
        redis.hget('login:', id),
      ])
      return user
    }
  },
})
