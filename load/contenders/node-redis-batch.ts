import { nodeRedisSender } from '@onetrip/node-redis'
import { batching } from '@onetrip/session-store'
import { nodeRedis } from './support/node-redis.ts'
import { serve } from './support/serve.ts'

// node-redis with the batching of our strategy `batch`: one pipeline for all requests of an event-loop turn.

await serve('node-redis-batch', async (options) =>
  batching(nodeRedisSender(await nodeRedis(options))),
)
