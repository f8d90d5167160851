import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { StoreError } from '@onetrip/session-store'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { dataRoutes } from './data.ts'
import { sessionRoutes } from './sessions.ts'
import { viewRoutes } from './views.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** User of the checked session. Only in the application's routes. */
    user: string
  }
}

interface AuthenticatedRoutesOptions {
  /** Routes of the application. The session of each request is checked first, in one round trip. */
  routes: FastifyPluginAsyncTypebox | undefined
  /** See `Limits`. */
  dataBodyBytes: number
}

/**
 * Routes that need a session. A hook rejects requests without a token, for all routes here. The store calls
 * check that the token is valid and that the session exists, in the round trip that they make anyway.
 */
export const authenticatedRoutes = fp<AuthenticatedRoutesOptions>(
  async (app, { routes, dataBodyBytes }) => {
    app.addHook('onRequest', (request, reply, done) => {
      void request.session.token // throws if there is none
      if (request.method !== 'POST') reply.header('cache-control', 'no-store')
      done()
    })
    documentTokens(app)

    await app.register(viewRoutes)
    await app.register(sessionRoutes)
    await app.register(dataRoutes, { bodyBytes: dataBodyBytes })
    if (!routes) return
    await app.register(async (checked) => {
      // The handlers in this scope do not pass the token to the store, so a hook checks the session.
      checked.decorateRequest('user', '')
      checked.addHook('onRequest', async (request) => {
        const { user } = await request.session.check()
        if (user === null) throw new StoreError('ONETRIP_LOGIN_REQUIRED')
        request.user = user
      })
      await checked.register(routes)
    })
  },
  {
    name: 'authenticated-routes',
    dependencies: ['errors', '@onetrip/session-store'],
    encapsulate: true,
  },
)

function documentTokens(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    route.schema = { ...route.schema, security: [{ bearer: [] }, { cookie: [] }] }
  })
}
