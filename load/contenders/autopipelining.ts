import type { Command, Outcome } from '@onetrip/session-store'
import { Redis } from 'ioredis'
import { type RedisOptions, redisAddress } from '../src/stack/address.ts'
import { serve } from './support/serve.ts'

// ioredis with `enableAutoPipelining`: plain calls, which it gathers into a pipeline for each turn of
// the event loop.

async function call(redis: Redis, [name, ...args]: Command): Promise<Outcome> {
  try {
    return (await redis.call(name, ...args)) as Outcome
  } catch (error) {
    return error as Error
  }
}

await serve('autopipelining', async ({ redisUrl }) => {
  const options: RedisOptions = { ...redisAddress(redisUrl).options, enableAutoPipelining: true }
  const redis = new Redis(options)
  redis.on('error', (error: Error) => void process.stderr.write(`ioredis: ${error.message}\n`))
  return {
    send: ({ commands }) => Promise.all(commands.map((command) => call(redis, command))),
    close: async () => void (await redis.quit()),
  }
})
