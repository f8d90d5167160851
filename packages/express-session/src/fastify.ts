import { answer, type Callback } from './callbacks.ts'
import { plain } from './encoding.ts'
import type { CommandRunner, StoreOptions } from './options.ts'
import { RedisSessions, type UserSession } from './redis-sessions.ts'

export type { CommandRunner, StoredSession, StoreOptions } from './options.ts'
export type { UserSession } from './redis-sessions.ts'

/**
 * A store for @fastify/session: `register(session, { store: new FastifySessionStore(store), … })`.
 *
 * @fastify/session does not report what a request has changed, so each save writes the whole session: of concurrent
 * requests the last save wins, even if they changed different fields. For five minutes after `destroy`, a late save does
 * not bring the session back and reports no error.
 *
 * `get`, `set` and `destroy` take a callback; without one, all methods return a promise.
 */
export class FastifySessionStore {
  readonly #sessions: RedisSessions

  /** @throws TypeError for an option that does not exist or has a wrong value. */
  constructor(store: CommandRunner, options?: StoreOptions) {
    this.#sessions = new RedisSessions(store, options)
  }

  /** The session; null if it has ended. */
  // biome-ignore lint/suspicious/noExplicitAny: the application declares what a session holds
  get(id: string, callback?: Callback<any>) {
    return answer(this.#sessions.read(id), callback)
  }

  /** Creates or replaces the session. */
  set(id: string, session: object, callback?: Callback) {
    return answer(this.#save(id, session), callback)
  }

  async #save(id: string, session: object): Promise<void> {
    await this.#sessions.create(id, plain(session))
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
