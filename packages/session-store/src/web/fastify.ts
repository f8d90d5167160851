import type { SessionStore } from '../store.ts'
import type { RequestSession } from './sessions.ts'

export * from './fastify-named.ts'

declare module 'fastify' {
  interface FastifyInstance {
    store: SessionStore
  }
  interface FastifyRequest {
    session: RequestSession
  }
}
