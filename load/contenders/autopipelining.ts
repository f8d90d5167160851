import { type Command, type Outcome, parseRedisUrl } from '@onetrip/session-store'
import { Redis } from 'ioredis'
import { serve } from './support/serve.ts'

// ioredis with `enableAutoPipelining`, which combines the calls of an event-loop turn into one pipeline.

async function call(redis: Redis, [name, ...args]: Command): Promise<Outcome> {
  try {
    return (await redis.call(name, ...args)) as Outcome
  } catch (error) {
    return error as Error
  }
}

await serve('autopipelining', async ({ redisUrl }) => {
  const redis = new Redis({ ...parseRedisUrl(redisUrl).options, enableAutoPipelining: true })
  redis.on('error', (error: Error) => void process.stderr.write(`ioredis: ${error.message}\n`))
  return {
    send: ({ commands }) => Promise.all(commands.map((command) => call(redis, command))),
    close: async () => void (await redis.quit()),
  }
})
