import type { SessionStore } from './store-types.ts'
import type { RequestSession } from './web/sessions.ts'

export * from './fastify-named.ts'

declare module 'fastify' {
  interface FastifyInstance {
    store: SessionStore
  }
  interface FastifyRequest {
    session: RequestSession
  }
}
