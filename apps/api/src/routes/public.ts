import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { StoreError } from '@onetrip/session-store'
import type { Authenticator } from '../authenticator.ts'
import { Login, limitQuery, Popular } from '../schemas.ts'

/** What needs no session. */
export const publicRoutes: FastifyPluginAsyncTypebox<{ authenticator: Authenticator }> = async (
  app,
  { authenticator },
) => {
  const { store } = app

  app.post(
    '/login',
    { schema: { body: authenticator.credentials, response: { 200: Login } } },
    async (request, reply) => {
      const user = await authenticator.authenticate(request.body)
      if (user === undefined) {
        throw new StoreError('ONETRIP_INVALID_TOKEN', 'these credentials prove nobody')
      }
      // Always a new token, never one that the client sent: no session fixation.
      const { token, expiresAt } = await store.login(user)
      const expires = new Date(expiresAt)
      app.setTokenCookie(reply, token, expires)
      reply.header('cache-control', 'no-store')
      return { token, user, expiresAt: expires.toISOString() }
    },
  )

  app.get(
    '/items/popular',
    { schema: { querystring: limitQuery(10), response: { 200: Popular } } },
    async (request) => ({ items: await store.popularItems(request.query.limit) }),
  )
}
