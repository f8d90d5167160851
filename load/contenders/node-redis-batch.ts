import { batching, nodeRedisSender } from '@onetrip/session-store'
import { nodeRedis } from './support/node-redis.ts'
import { serve } from './support/serve.ts'

// node-redis with the batching of our `batch`: a pipeline for the requests of one turn.

await serve('node-redis-batch', async (options) =>
  batching(nodeRedisSender(await nodeRedis(options))),
)
