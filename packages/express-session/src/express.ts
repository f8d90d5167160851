import session from 'express-session'
import { answer, type Callback } from './callbacks.ts'
import { SessionsOfRequests } from './changes.ts'
import { plain } from './encoding.ts'
import type { CommandRunner, StoreOptions } from './options.ts'
import type { UserSession } from './redis-sessions.ts'

export type { CommandRunner, StoredSession, StoreOptions } from './options.ts'
export type { UserSession } from './redis-sessions.ts'

type SessionData = session.SessionData
type Listed = SessionData & { id: string }

/**
 * A store for express-session: `session({ store: new ExpressSessionStore(store), … })`.
 *
 * Saving a loaded session writes only the top-level fields that have changed since it was loaded. So parallel requests
 * lose no changes unless they change the same field (the last one wins). The cookie is such a field; its expiry, which
 * express-session extends in each request, is only written if no other request has changed the cookie. A save or touch
 * of a session that has ended writes nothing and reports no error.
 *
 * The methods of express-session take a callback; without one, all methods return a promise.
 */
export class ExpressSessionStore extends session.Store {
  readonly #sessions: SessionsOfRequests

  /** @throws TypeError for an option that does not exist or has a wrong value. */
  constructor(store: CommandRunner, options?: StoreOptions) {
    super()
    this.#sessions = new SessionsOfRequests(store, options)
  }

  override createSession(...[request, data]: Parameters<session.Store['createSession']>) {
    const fields = plain(data)
    const loaded = super.createSession(request, data)
    const snapshot = this.#sessions.snapshotOf(request.sessionID, fields, plain(loaded.cookie))
    this.#sessions.loaded(loaded, snapshot)
    return loaded
  }

  /** The session; null if it has ended. */
  override get(id: string, callback?: Callback<SessionData | null>) {
    return answer(this.#sessions.read(id) as Promise<SessionData | null>, callback)
  }

  /** Saves the changes of a loaded session; creates or replaces any other. */
  override set(id: string, saved: SessionData, callback?: Callback) {
    return answer(this.#sessions.save(id, saved), callback)
  }

  /** Stores the expiry of the cookie. */
  override touch(id: string, touched: SessionData, callback?: Callback) {
    return answer(this.#sessions.touch(id, touched), callback)
  }

  /** Ends the session. No save creates it again within five minutes. */
  override destroy(id: string, callback?: Callback) {
    return answer(this.#sessions.end(id), callback)
  }

  /** The sessions of a user, latest login first. Needs `userOf`. */
  ofUser(user: string): Promise<UserSession[]> {
    return this.#sessions.ofUser(user)
  }

  /** Ends all sessions of a user. Returns their number. Needs `userOf`. */
  endUserSessions(user: string): Promise<number> {
    return this.#sessions.endUserSessions(user)
  }

  /** Ends all sessions of a user except this one. Returns their number. Needs `userOf`. */
  endOthers(user: string, id: string): Promise<number> {
    return this.#sessions.endUserSessions(user, id)
  }

  /** All sessions, each with its id. Slow, as `length`, `ids` and `clear`: they read all keys of a single Redis. */
  override all(callback?: Callback<Listed[]>) {
    return answer(this.#sessions.all() as Promise<unknown[]> as Promise<Listed[]>, callback)
  }

  override length(callback?: Callback<number>) {
    return answer(
      this.#sessions.ids().then((ids) => ids.length),
      callback,
    )
  }

  ids(callback?: Callback<string[]>) {
    return answer(this.#sessions.ids(), callback)
  }

  /** Ends all sessions. */
  override clear(callback?: Callback) {
    return answer(this.#sessions.clear(), callback)
  }
}
