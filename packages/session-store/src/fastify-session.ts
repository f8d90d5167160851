import {
  type AdapterOptions,
  adapter,
  answer,
  type Callback,
  type StoredSession,
} from './adapters/session-store.ts'
import type { SessionStore } from './store-types.ts'

export type { AdapterOptions, OldStore, StoredSession } from './adapters/session-store.ts'

/**
 * A store for @fastify/session that keeps sessions in a session store of ours:
 * `register(session, { store: fastifySessionStore(store), … })`.
 *
 * @fastify/session does not show what a request has changed, so each save writes the whole session: of
 * requests at the same time the last one wins, also where they changed different fields. For five minutes
 * a late save does not bring a destroyed session back; it ends without an error then.
 *
 * All functions take a callback, and return a promise for those who call them without one. `all`,
 * `length`, `ids` and `clear` walk all sessions.
 *
 * @throws TypeError unless `store` comes from `createSessionStore`.
 */
export function fastifySessionStore(
  store: Pick<SessionStore, 'external'>,
  options?: AdapterOptions,
) {
  const sessions = adapter(store, options)
  return {
    /** The session; null when it is gone or idle, or its cookie has expired. */
    // biome-ignore lint/suspicious/noExplicitAny: the application declares what a session holds
    get: (id: string, callback?: (error: unknown, session?: any) => void) =>
      answer(sessions.get(id), callback),

    /** Creates or replaces the session, unless it was destroyed within the last five minutes. */
    set: (id: string, session: object, callback?: Callback) =>
      answer(sessions.put(id, session), callback),

    /** The session is used now: its idle timeout begins anew, and its cookie's expiry is stored. */
    touch: (id: string, session: object, callback?: Callback) =>
      answer(sessions.touch(id, session), callback),

    /** Ends the session. For five minutes no request can create it again. */
    destroy: (id: string, callback?: Callback) => answer(sessions.destroy(id), callback),

    /** All sessions, each with its `id`. */
    all: (callback?: (error: unknown, sessions?: (StoredSession & { id: string })[]) => void) =>
      answer(sessions.all(), callback),

    length: (callback?: (error: unknown, length?: number) => void) =>
      answer(
        sessions.all().then((all) => all.length),
        callback,
      ),

    ids: (callback?: (error: unknown, ids?: string[]) => void) =>
      answer(
        sessions.all().then((all) => all.map(({ id }) => id)),
        callback,
      ),

    /** Ends all sessions that express-session or @fastify/session began; those of tokens stay. */
    clear: (callback?: Callback) => answer(sessions.clear(), callback),
  }
}
