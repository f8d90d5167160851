import { createSessionStore, type SessionStore, StoreError } from '@onetrip/session-store'
import Fastify from 'fastify'
import fp from 'fastify-plugin'

declare module 'fastify' {
  interface FastifyInstance {
    sessions: SessionStore
  }
}

const sessions = fp(async (app) => {
  const store = createSessionStore({
    url: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379',
    tokens: { secrets: [process.env.SESSION_SECRET ?? ''] },
  })
  app.addHook('onClose', () => store.close())
  await store.ready() // the server listens once Redis can be used
  app.decorate('sessions', store)
})

const app = Fastify()
await app.register(sessions)

app.setErrorHandler((error, _request, reply) => {
  if (!(error instanceof StoreError)) return reply.send(error)
  const { code, message, retrySafe, mayHaveWritten } = error
  return reply.code(error.statusCode).send({ code, message, retrySafe, mayHaveWritten })
})

const body = {
  type: 'object',
  required: ['item'],
  properties: { item: { type: 'string' } },
}
app.post<{ Body: { item: string } }>('/views', { schema: { body } }, (request) => {
  const token = request.headers.authorization?.replace('Bearer ', '') ?? ''
  return app.sessions.recordView(token, request.body.item)
})

await app.listen({ port: Number(process.env.PORT ?? 3000) })
