import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { ApiError } from '../errors.ts'
import { dataRoutes } from './data.ts'
import { sessionRoutes } from './sessions.ts'
import { viewRoutes } from './views.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** In the application's own `routes`: the user of the session, which has been checked. */
    user: string
  }
}

export interface AuthenticatedRoutesOptions {
  /** Routes of the application. Each request costs a round trip that checks its session. */
  routes: FastifyPluginAsyncTypebox | undefined
  /** As in `Limits`. */
  dataBodyBytes: number
}

/**
 * What needs a session. A route in here cannot forget to ask for the token; that it is genuine and its
 * session still there, each store call finds out in the round trip that it makes anyway.
 */
export const authenticatedRoutes = fp<AuthenticatedRoutesOptions>(
  async (app, { routes, dataBodyBytes }) => {
    app.addHook('onRequest', (request, reply, done) => {
      void request.session.token // throws unless there is one
      if (request.method !== 'POST') reply.header('cache-control', 'no-store')
      done()
    })
    documentTokens(app)

    await app.register(viewRoutes)
    await app.register(sessionRoutes)
    await app.register(dataRoutes, { bodyBytes: dataBodyBytes })
    if (routes) {
      await app.register(async (own) => {
        // A handler of the application may not call the store, so its requests are checked before it.
        own.decorateRequest('user', '')
        own.addHook('onRequest', async (request) => {
          const { user } = await request.session.check()
          if (user === null) throw new ApiError('API_LOGIN_FIRST')
          request.user = user
        })
        await own.register(routes)
      })
    }
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
