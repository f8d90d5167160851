import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'

/** `/healthz`: the process answers. `/readyz`: and Redis does, too. Neither writes anything. */
export const healthRoutes: FastifyPluginAsyncTypebox = async (app) => {
  app.get('/healthz', { logLevel: 'warn' }, async () => ({ status: 'ok' }))
  app.get('/readyz', { logLevel: 'warn' }, async () => {
    await app.store.ping()
    return { status: 'ready', strategy: app.store.strategy }
  })
}
