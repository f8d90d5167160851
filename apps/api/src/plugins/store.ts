import type { SessionStore } from '@onetrip/session-store'
import fp from 'fastify-plugin'

declare module 'fastify' {
  interface FastifyInstance {
    store: SessionStore
  }
}

/** Makes the store known to the routes. Whoever created the store closes it. */
export const storePlugin = fp<{ store: SessionStore }>(
  async (app, { store }) => {
    app.decorate('store', store)
  },
  { name: 'store' },
)
