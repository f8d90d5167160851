import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { feedRoutes } from './feed.ts'
import { riskRoutes } from './risk.ts'
import { saleRoutes } from './sale.ts'
import { viewersRoutes } from './viewers.ts'

/** Example applications from the source articles. They need `request.user`. */
export const shopRoutes: FastifyPluginAsyncTypebox = async (app) => {
  await app.register(saleRoutes)
  await app.register(feedRoutes)
  await app.register(viewersRoutes)
  await app.register(riskRoutes)
}
