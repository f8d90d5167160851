import { answer, type Callback } from './callbacks.ts'
import { SessionsOfRequests, type Snapshot } from './changes.ts'
import type { CommandRunner, StoredSession, StoreOptions } from './options.ts'
import type { UserSession } from './redis-sessions.ts'

export type { CommandRunner, StoredSession, StoreOptions } from './options.ts'
export type { UserSession } from './redis-sessions.ts'

/**
 * A store for @fastify/session: `register(session, { store: new FastifySessionStore(store), … })`.
 *
 * From @fastify/session 11.1.3 on, saving a loaded session writes only the top-level fields that have changed since it
 * was loaded, as `ExpressSessionStore` does. Earlier versions do not show what a request has loaded: each save writes the
 * whole session, so of concurrent requests the last one wins. A late save of an ended session writes nothing and reports
 * no error.
 *
 * `get`, `set` and `destroy` take a callback; without one, all methods return a promise.
 */
export class FastifySessionStore {
  readonly #sessions: SessionsOfRequests

  /** @throws TypeError for an option that does not exist or has a wrong value. */
  constructor(store: CommandRunner, options?: StoreOptions) {
    this.#sessions = new SessionsOfRequests(store, options)
  }

  /** The session; null if it has ended. */
  // biome-ignore lint/suspicious/noExplicitAny: the application declares what a session holds
  get(id: string, callback?: Callback<any>) {
    return answer(callback ? this.#load(id) : this.#sessions.read(id), callback)
  }

  /** Loads a session for a request. */
  async #load(id: string): Promise<StoredSession | null> {
    const session = await this.#sessions.read(id)
    if (session?.cookie) {
      Object.assign(session.cookie, { [LOADED]: this.#sessions.snapshotOf(id, session) })
    }
    return session
  }

  /** Saves the changes of a loaded session; creates or replaces any other. */
  set(id: string, session: object, callback?: Callback) {
    return answer(this.#sessions.save(id, session, loadedAs(id, session)), callback)
  }

  /** Ends the session. No save creates it again within five minutes. */
  destroy(id: string, callback?: Callback) {
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
}

/** @fastify/session copies the properties of a loaded cookie to the options of the session's cookie. */
const LOADED = Symbol('as loaded')

/** What a session object has loaded, unless it has another id since (`regenerate`). */
function loadedAs(id: string, session: object): Snapshot | undefined {
  for (const key of Object.getOwnPropertySymbols(session)) {
    const { [LOADED]: loaded } = Object(Reflect.get(session, key)) as { [LOADED]?: Snapshot }
    if (loaded?.id === id) return loaded
  }
  return undefined
}
