import fastifyCookie from '@fastify/cookie'
import fastifySession from '@fastify/session'
import { createSessionStore, type SessionStore } from '@onetrip/session-store'
import { fastifySessions, type RequestSession } from '@onetrip/session-store/fastify-named'
import { fastifySessionStore } from '@onetrip/session-store/fastify-session'
import Fastify from 'fastify'

declare module 'fastify' {
  interface FastifyInstance {
    sessions: SessionStore
  }
  interface FastifyRequest {
    onetrip: RequestSession
  }
}

const secret = process.env.SESSION_SECRET ?? ''
const store = createSessionStore({
  url: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379',
  tokens: { secrets: [secret] },
})
await store.ready()

// Step 1, as before: request.session belongs to @fastify/session.
const app = Fastify()
app.addHook('onClose', () => store.close())
await app.register(fastifyCookie)
await app.register(fastifySession, {
  store: fastifySessionStore(store),
  secret,
  saveUninitialized: false,
  rolling: false,
})

// Step 2: request.onetrip and app.sessions. A request with an old session gets a token, and its data moves.
await app.register(fastifySessions, {
  store,
  cookie: { secure: process.env.NODE_ENV !== 'development' },
  decorators: { session: 'onetrip', store: 'sessions' },
})
app.addHook('preHandler', async (request, reply) => {
  const { cookie, user, ...data } = { ...request.session } as Record<string, unknown>
  if (typeof user !== 'string') return
  const { token } = await reply.login(user)
  await app.sessions.patch(token, data)
  await request.session.destroy()
  reply.clearCookie('sessionId')
})
app.get('/me', ({ onetrip }) => onetrip.check({ data: true }))
app.post('/logout', async (_request, reply) => ({ ended: await reply.logout() }))

process.once('SIGTERM', () => void app.close())
console.log(await app.listen({ port: Number(process.env.PORT ?? 3000) }))
