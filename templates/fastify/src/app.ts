import type { SessionStore } from '@onetrip/session-store'
import { fastifySessions } from '@onetrip/session-store/fastify'
import Fastify from 'fastify'
import { isPasswordOf } from './users.ts'

const text = { type: 'string', maxLength: 128 }
const body = {
  type: 'object',
  required: ['user', 'password'],
  properties: { user: text, password: text },
}

/** The application on a store: in Redis (server.ts), or in memory (test/app.ts). */
export async function createApp(store: SessionStore) {
  const app = Fastify({ logger: process.env.NODE_ENV === 'production' })
  const secure = process.env.NODE_ENV === 'production' // only over HTTPS
  await app.register(fastifySessions, { store, cookie: { secure } })

  app.get('/healthz', () => ({ status: 'ok' }))
  app.post<{ Body: { user: string; password: string } }>(
    '/login',
    { schema: { body } },
    async ({ body: { user, password } }, reply) => {
      if (!(await isPasswordOf(user, password))) {
        return reply.code(401).send({ message: 'wrong user or password' })
      }
      await reply.login(user)
      return { user }
    },
  )
  app.post<{ Params: { item: string } }>('/views/:item', ({ session, params }) =>
    session.recordView(params.item),
  )
  app.get('/me', ({ session }) => session.check())
  app.post('/logout', async (_request, reply) => ({ ended: await reply.logout() }))
  return app
}
