import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { onRequestHookHandler } from 'fastify'
import fp from 'fastify-plugin'
import type { Authenticator } from '../authenticator.ts'
import { ApiError } from '../errors.ts'
import { Guest, Login, limitQuery, NoContent, Popular } from '../schemas.ts'

interface PublicRoutesOptions {
  authenticator: Authenticator
}

/**
 * Login CSRF: a page of another origin could log a visitor in to the attacker's account, which would then record what
 * the visitor views.
 */
const refuseCrossSite: onRequestHookHandler = (request, _reply, done) => {
  request.session.refuseCrossSite()
  done()
}

const routes: FastifyPluginAsyncTypebox<PublicRoutesOptions> = async (app, { authenticator }) => {
  const { store } = app

  app.post(
    '/login',
    {
      schema: {
        operationId: 'login',
        summary: 'Log in',
        description:
          'Always issues a new token. If the request has a session cookie, that session is ended. The new session takes over the views and data of a guest session.',
        tags: ['sessions'],
        body: authenticator.credentials,
        response: { 200: Login },
      },
      onRequest: refuseCrossSite,
    },
    async (request, reply) => {
      await app.limitLogins(request, authenticator.claimedUser(request.body))
      const user = await authenticator.authenticate(request.body)
      if (user === undefined) throw new ApiError('API_WRONG_CREDENTIALS')
      const remember = authenticator.remembers?.(request.body) ?? false
      reply.header('cache-control', 'no-store')
      return await reply.login(user, { remember, label: authenticator.label?.(request) })
    },
  )

  if (authenticator.guests) await app.register(guestRoutes)

  app.post(
    '/logout',
    {
      schema: {
        operationId: 'logout',
        summary: 'Log out: end this session',
        description:
          'Idempotent: 204 also without a token, with an invalid or expired one, and if the session has ended.',
        tags: ['sessions'],
        security: [{}, { bearer: [] }, { cookie: [] }],
        response: { 204: NoContent },
      },
    },
    async (_request, reply) => {
      await reply.logout()
      return reply.code(204).send()
    },
  )

  app.get(
    '/items/popular',
    {
      schema: {
        operationId: 'listPopular',
        summary: 'List the most viewed items',
        tags: ['views'],
        querystring: limitQuery(10),
        response: { 200: Popular },
      },
    },
    async (request) => ({ items: await store.popularItems(request.query.limit) }),
  )
}

const guestRoutes: FastifyPluginAsyncTypebox = async (app) => {
  app.post(
    '/guest',
    {
      schema: {
        operationId: 'startGuest',
        summary: 'Start a session without a user, unless the request has a session',
        tags: ['sessions'],
        response: { 200: Guest },
      },
      onRequest: refuseCrossSite,
    },
    async (request, reply) => {
      reply.header('cache-control', 'no-store')
      const session = await request.session.find()
      if (session) return { user: session.user }
      await app.limitLogins(request)
      return { ...(await reply.loginGuest()), user: null }
    },
  )
}

/** Routes that need no session. */
export const publicRoutes = fp(routes, {
  name: 'public-routes',
  dependencies: ['errors', '@onetrip/session-store', 'login-limit'],
  encapsulate: true,
})
