import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import fp from 'fastify-plugin'
import type { Authenticator } from '../authenticator.ts'
import { ApiError } from '../errors.ts'
import { Login, limitQuery, Popular } from '../schemas.ts'

const routes: FastifyPluginAsyncTypebox<{ authenticator: Authenticator }> = async (
  app,
  { authenticator },
) => {
  const { store } = app

  app.post(
    '/login',
    {
      schema: {
        operationId: 'login',
        summary: 'Log in',
        description:
          'Always on a new token. If a cookie came with a token, the session of that one is ended.',
        tags: ['sessions'],
        body: authenticator.credentials,
        response: { 200: Login },
        'x-errors': [401, 403],
      },
      // Nobody may be logged in by a page of another origin: what they then view would be its author's.
      onRequest: (request, _reply, done) => {
        request.session.refuseCrossSite()
        done()
      },
    },
    async (request, reply) => {
      await app.limitLogins(request, authenticator.claimedUser(request.body))
      const user = await authenticator.authenticate(request.body)
      if (user === undefined) throw new ApiError('API_WRONG_CREDENTIALS')
      const remember = authenticator.remembers?.(request.body) ?? false
      reply.header('cache-control', 'no-store')
      const login = await reply.login(user, { remember })
      app.risk?.loggedIn(request, user)
      return login
    },
  )

  app.get(
    '/items/popular',
    {
      schema: {
        operationId: 'listPopular',
        summary: 'The most viewed items',
        tags: ['views'],
        querystring: limitQuery(10),
        response: { 200: Popular },
      },
    },
    async (request) => ({ items: await store.popularItems(request.query.limit) }),
  )
}

/** What needs no session. */
export const publicRoutes = fp(routes, {
  name: 'public-routes',
  dependencies: ['errors', '@onetrip/session-store', 'login-limit'],
  encapsulate: true,
})
