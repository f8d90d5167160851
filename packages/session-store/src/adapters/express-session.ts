import '../core/node-version.ts'
import session from 'express-session'
import type { SessionStore } from '../core/store.ts'
import { changesSince, cookieChange, type Snapshot, snapshotOf } from './changes.ts'
import type { ExternalSessions } from './external-sessions.ts'
import { type AdapterOptions, adapter, type Callback, plain } from './session-store.ts'

export {
  type ImportOptions,
  type ImportProgress,
  importConnectRedis,
} from './import-connect-redis.ts'
export type { AdapterOptions, OldStore, StoredSession, UserOf } from './session-store.ts'

type SessionData = session.SessionData

/**
 * A store for express-session.
 *
 * Saving a loaded session writes only the top-level fields that have changed since it was loaded. So parallel
 * requests lose no changes unless they change the same field (the last one wins). The cookie is such a field; its
 * expiry, which express-session extends in each request, is only written if no other request has changed the cookie.
 * A loaded session is only saved if it still exists: a late `save` does not bring a destroyed session back and
 * reports no error.
 *
 * All methods accept a callback, except `ofUser` and `endOthers`; without one they return a promise. `all`, `length`, `ids` and `clear` read
 * every session.
 */
export class OnetripSessionStore extends session.Store {
  readonly #sessions: ReturnType<typeof adapter>
  /** For each session object of a request: what it last loaded or saved. */
  readonly #snapshots = new WeakMap<object, Snapshot>()

  /** @throws TypeError unless `store` was created by `createSessionStore`. */
  constructor(store: SessionStore, options?: AdapterOptions) {
    super()
    this.#sessions = adapter(store, options)
  }

  override createSession(
    ...[request, data]: Parameters<session.Store['createSession']>
  ): session.Session & SessionData {
    const fields = plain(data)
    const loaded = super.createSession(request, data)
    const user = this.#sessions.userOf(fields)
    this.#snapshots.set(loaded, snapshotOf(fields, user, plain(loaded.cookie)))
    return loaded
  }

  /** The session; null if it has ended or is idle, or its cookie has expired. */
  override get(id: string, callback?: (error: unknown, session?: SessionData | null) => void) {
    const found = this.#sessions.get(id) as Promise<SessionData | null>
    return this.#sessions.answer(found, callback)
  }

  /** Saves the changes of a loaded session; creates or replaces any other. */
  override set(id: string, saved: SessionData, callback?: Callback) {
    return this.#sessions.answer(this.#sessions.saving(this.#save(id, saved)), callback)
  }

  async #save(id: string, saved: SessionData): Promise<void> {
    const fields = plain(saved)
    const before = this.#snapshots.get(saved)
    const user = this.#sessions.userOf(fields)
    if (before === undefined) await this.#sessions.put(id, fields)
    else await this.#sessions.patch(id, fields, changesSince(before, fields, user))
    this.#snapshots.set(saved, snapshotOf(fields, user))
  }

  /** Restarts the idle timeout and stores the expiry of the cookie. */
  override touch(id: string, touched: SessionData, callback?: Callback) {
    return this.#sessions.answer(this.#sessions.saving(this.#touch(id, touched)), callback)
  }

  async #touch(id: string, touched: SessionData): Promise<void> {
    const before = this.#snapshots.get(touched)
    if (before === undefined) return await this.#sessions.touch(id, touched)
    const cookie = plain(touched.cookie)
    await this.#sessions.patch(id, { cookie }, cookieChange(before, cookie))
    this.#snapshots.set(touched, { ...before, stored: cookie, cookie })
  }

  /** Ends the session. No request can create it again for five minutes; with `migrateFrom`, for `idleSeconds`. */
  override destroy(id: string, callback?: Callback) {
    return this.#sessions.answer(this.#sessions.destroy(id), callback)
  }

  /** All sessions, each with its `id`. */
  override all(callback?: (error: unknown, sessions?: (SessionData & { id: string })[]) => void) {
    const all = this.#sessions.all() as Promise<unknown[]> as Promise<
      (SessionData & { id: string })[]
    >
    return this.#sessions.answer(all, callback)
  }

  /** A user's sessions, latest login first; needs `userOf`. Without sessions of tokens. */
  ofUser(user: string): ReturnType<ExternalSessions['ofUser']> {
    return this.#sessions.ofUser(user)
  }

  /**
   * Ends all sessions of a user except this one, also those of tokens; needs `userOf`. Returns their number. For all
   * of them use `store.endUserSessions`.
   */
  endOthers(user: string, id: string): Promise<number> {
    return this.#sessions.endOthers(user, id)
  }

  override length(callback?: (error: unknown, length?: number) => void) {
    return this.#sessions.answer(
      this.#sessions.all().then((all) => all.length),
      callback,
    )
  }

  ids(callback?: (error: unknown, ids?: string[]) => void) {
    return this.#sessions.answer(
      this.#sessions.all().then((all) => all.map(({ id }) => id)),
      callback,
    )
  }

  /** Ends all sessions of express-session and @fastify/session, but not those of tokens. */
  override clear(callback?: Callback) {
    return this.#sessions.answer(this.#sessions.clear(), callback)
  }
}

/**
 * Creates a store for express-session: `session({ store: expressSessionStore(store), … })`.
 *
 * @throws TypeError unless `store` was created by `createSessionStore`.
 */
export const expressSessionStore = (
  store: SessionStore,
  options?: AdapterOptions,
): OnetripSessionStore => new OnetripSessionStore(store, options)
