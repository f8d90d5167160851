import { serve } from '../src/index.ts'

/** The API with a stream that ends with its session, as an open WebSocket does. */
await serve({
  routes: async (app) => {
    app.get('/stream', { schema: { hide: true } }, async (request, reply) => {
      reply.hijack()
      const stop = await request.session.watch(() => reply.raw.end())
      reply.raw.once('close', stop).writeHead(200).write('watching')
    })
  },
})
