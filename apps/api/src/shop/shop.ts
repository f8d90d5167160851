import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import fp from 'fastify-plugin'
import { feedRoutes } from './feed.ts'
import { riskRoutes } from './risk.ts'
import { type Buy, buyByScript, saleRoutes } from './sale.ts'
import { viewersRoutes } from './viewers.ts'

export interface ShopOptions {
  /** Whether this user may put items on sale. */
  maySell(user: string): boolean
  /** Default: `buyByScript`. */
  buy?: Buy | undefined
}

const routes: FastifyPluginAsyncTypebox<ShopOptions> = async (app, options) => {
  const { maySell, buy = buyByScript(app.store) } = options
  await app.register(saleRoutes, { maySell, buy })
  await app.register(feedRoutes)
  await app.register(viewersRoutes)
  if (app.risk) await app.register(riskRoutes, { risk: app.risk })
}

/** Example applications from the source articles. They need `request.user`. */
export const shopRoutes = fp(routes, {
  name: 'shop-routes',
  dependencies: ['@onetrip/session-store'],
  encapsulate: true,
})
