import '../core/node-version.ts'
import type { SessionStore } from '../core/store.ts'
import { type AdapterOptions, adapter, type Callback } from './session-store.ts'

export {
  type ImportOptions,
  type ImportProgress,
  importConnectRedis,
} from './import-connect-redis.ts'
export type { AdapterOptions, OldStore, StoredSession, UserOf } from './session-store.ts'

/**
 * Creates a store for @fastify/session: `register(session, { store: fastifySessionStore(store), … })`.
 *
 * @fastify/session does not report what a request has changed, so each save writes the whole session: of
 * concurrent requests the last save wins, even if they changed different fields. For five minutes after
 * `destroy`, a late save does not bring the session back and reports no error.
 *
 * `get`, `set` and `destroy` accept a callback; without one they return a promise.
 *
 * @throws TypeError unless `store` was created by `createSessionStore`.
 */
export function fastifySessionStore(store: SessionStore, options?: AdapterOptions) {
  const sessions = adapter(store, options)
  return {
    /** The session; null if it has ended or is idle, or its cookie has expired. */
    // biome-ignore lint/suspicious/noExplicitAny: the application declares what a session holds
    get: (id: string, callback?: (error: unknown, session?: any) => void) =>
      sessions.answer(sessions.get(id), callback),

    /** Creates or replaces the session, unless it was destroyed within the last five minutes. */
    set: (id: string, session: object, callback?: Callback) =>
      sessions.answer(sessions.saving(sessions.put(id, session)), callback),

    /** Ends the session. No request can create it again for five minutes; with `migrateFrom`, for `idleSeconds`. */
    destroy: (id: string, callback?: Callback) => sessions.answer(sessions.destroy(id), callback),

    /** A user's sessions, latest login first; needs `userOf`. Without sessions of tokens. */
    ofUser: sessions.ofUser,

    /**
     * Ends all sessions of a user except this one, also those of tokens; needs `userOf`. Returns their number. For
     * all of them use `store.endUserSessions`.
     */
    endOthers: sessions.endOthers,
  }
}
