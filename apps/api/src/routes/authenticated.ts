import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { ApiError } from '../errors.ts'
import { type ShopOptions, shopRoutes } from '../shop/shop.ts'
import { dataRoutes } from './data.ts'
import { sessionRoutes } from './sessions.ts'
import { viewRoutes } from './views.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** In the shop's and the application's own routes: the user of the session, which has been checked. */
    user: string
  }
}

export interface AuthenticatedRoutesOptions {
  /** Routes of the application. Each request costs a round trip that checks its session. */
  routes: FastifyPluginAsyncTypebox | undefined
  /** As in `Limits`. */
  dataBodyBytes: number
  shop: ShopOptions
}

/**
 * What needs a session. A route in here cannot forget to ask for the token; that it is genuine and its
 * session still there, each store call finds out in the round trip that it makes anyway.
 */
export const authenticatedRoutes = fp<AuthenticatedRoutesOptions>(
  async (app, { routes, dataBodyBytes, shop }) => {
    app.addHook('onRequest', (request, reply, done) => {
      void request.session.token // throws unless there is one
      if (request.method !== 'POST') reply.header('cache-control', 'no-store')
      done()
    })
    documentTokens(app)

    await app.register(viewRoutes)
    await app.register(sessionRoutes)
    await app.register(dataRoutes, { bodyBytes: dataBodyBytes })
    await app.register(async (checked) => {
      // These handlers do not call the store with the token, so the session is checked before them.
      checked.decorateRequest('user', '')
      checked.addHook('onRequest', async (request) => {
        const { user } = await request.session.check()
        if (user === null) throw new ApiError('API_LOGIN_FIRST')
        request.user = user
      })
      await checked.register(shopRoutes, shop)
      if (routes) await checked.register(routes)
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
