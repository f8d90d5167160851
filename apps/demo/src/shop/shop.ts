import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { feedRoutes } from './feed.ts'
import { riskRoutes } from './risk.ts'
import { saleRoutes } from './sale.ts'
import { type OptimisticOptions, type SaleMethodName, saleMethod } from './sale-methods.ts'
import { viewersRoutes } from './viewers.ts'

interface ShopOptions extends OptimisticOptions {
  /** How an item is sold. */
  method: SaleMethodName
}

/** Example applications from the source articles. They need `request.user`. */
export const shopRoutes: FastifyPluginAsyncTypebox<ShopOptions> = async (app, options) => {
  const sale = saleMethod(options.method, app.store, options)
  app.addHook('onClose', async () => sale.close())
  await app.register(saleRoutes, { buy: sale.buy })
  await app.register(feedRoutes)
  await app.register(viewersRoutes)
  await app.register(riskRoutes)
}
