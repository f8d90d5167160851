import { run } from './support/run.ts'

type Command = (...values: (string | number)[]) => Promise<unknown>
/** The part of Bun's client that is used here: the program runs in Bun, and is checked with the types of Node. */
declare const Bun: {
  RedisClient: new (url: string) => Record<'hget' | 'zadd' | 'zincrby' | 'zremrangebyrank', Command>
}

await run({
  // It has no pipelines of the caller's: calls are pipelined automatically.
  bun({ url }) {
    const redis = new Bun.RedisClient(url)
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
