import { nodeRedis, sendPipeline } from './support/node-redis.ts'
import { serve } from './support/serve.ts'

// node-redis with a pipeline for each request.

await serve('node-redis', async (options) => {
  const client = await nodeRedis(options)
  return {
    send: ({ commands }) => sendPipeline(client, commands),
    close: () => client.close(),
  }
})
