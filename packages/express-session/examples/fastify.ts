import cookie from '@fastify/cookie'
import session from '@fastify/session'
import { FastifySessionStore } from '@onetrip/express-session/fastify'
import { SessionStore } from '@onetrip/session-store'
import Fastify from 'fastify'

const secret = process.env.SESSION_SECRET ?? '' // 32 characters or more
const store = new SessionStore({
  redis: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379',
  tokens: { secrets: [secret] },
})
await store.ready()

const app = Fastify()
app.addHook('onClose', () => store.close())
await app.register(cookie)
await app.register(session, {
  store: new FastifySessionStore(store),
  secret,
  saveUninitialized: false,
  rolling: false, // else each request writes the cookie
  cookie: { maxAge: 24 * 3600 * 1000, sameSite: 'lax', secure: 'auto' },
})
app.post<{ Params: { theme: string } }>('/theme/:theme', async (request) => {
  Object.assign(request.session, { theme: request.params.theme })
  return { theme: request.params.theme }
})
app.get('/theme', async ({ session }) => ({ theme: 'theme' in session ? session.theme : null }))

console.log(await app.listen({ port: Number(process.env.PORT ?? 3000) }))
process.once('SIGTERM', () => void app.close())
