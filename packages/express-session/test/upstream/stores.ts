import { SessionStore } from '@onetrip/session-store'
import { ExpressSessionStore } from '../../src/express.ts'
import { FastifySessionStore } from '../../src/fastify.ts'

export const port = Number(process.env.UPSTREAM_REDIS_PORT)
export const sessions = new SessionStore({
  redis: `redis://127.0.0.1:${port}`,
  tokens: { secrets: ['a-secret-for-tests-a-secret-for-tests'] },
  janitor: 'elsewhere',
})
export const connect = () => sessions.ready()
export const disconnect = () => sessions.close()

let stores = 0
/** A prefix of its own for each store, as each memory store has its own sessions. */
export const nextPrefix = () => `upstream-${process.pid}-${stores++}:`

/** In place of express-session's memory store. */
export class ExpressMemory extends ExpressSessionStore {
  constructor() {
    super(sessions, { prefix: nextPrefix() })
  }
}

/** In place of the memory store of @fastify/session. */
export class FastifyMemory extends FastifySessionStore {
  static Store = FastifyMemory
  static MemoryStore = FastifyMemory

  constructor() {
    super(sessions, { prefix: nextPrefix() })
  }
}

/** In place of connect-redis. */
export class ConnectRedis extends ExpressSessionStore {
  constructor() {
    super(sessions, { prefix: 'sess:' })
  }
}
