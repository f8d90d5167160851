import { type Command, type Outcome, parseRedisUrl, publishRoundTrip } from '@onetrip/session-store'
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

/** Makes the client publish a round trip for each pipeline, like our store. */
function countPipelines(redis: Redis): void {
  const begin = redis.pipeline.bind(redis)
  redis.pipeline = (commands) => {
    const pipeline = begin(commands)
    const execute = pipeline.exec.bind(pipeline)
    pipeline.exec = (callback) => {
      publishRoundTrip(pipeline.length)
      return execute(callback)
    }
    return pipeline
  }
}

await serve('autopipelining', async ({ redisUrl }) => {
  const redis = new Redis({ ...parseRedisUrl(redisUrl).options, enableAutoPipelining: true })
  countPipelines(redis)
  redis.on('error', (error: Error) => void process.stderr.write(`ioredis: ${error.message}\n`))
  return {
    send: ({ commands }) => Promise.all(commands.map((command) => call(redis, command))),
    close: async () => void (await redis.quit()),
  }
})
