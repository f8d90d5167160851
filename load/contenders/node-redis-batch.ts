import { batching } from './support/batching.ts'
import { nodeRedis, sendPipeline } from './support/node-redis.ts'
import { serve } from './support/serve.ts'

// node-redis with the batching of our `batch`: a pipeline for the requests of one turn.

await serve('node-redis-batch', async (options) => {
  const client = await nodeRedis(options)
  return {
    send: batching((commands) => sendPipeline(client, commands)),
    close: () => client.close(),
  }
})
