import session from 'express-session'
import {
  type AdapterOptions,
  adapter,
  answer,
  type Callback,
  plain,
} from './adapters/session-store.ts'
import type { SessionStore } from './store-types.ts'

export type { AdapterOptions, OldStore, StoredSession } from './adapters/session-store.ts'

type SessionData = session.SessionData

/** JSON text by field. */
type Snapshot = ReadonlyMap<string, string>

const snapshotOf = (fields: Record<string, unknown>): Snapshot =>
  new Map(Object.entries(fields).map(([name, value]) => [name, JSON.stringify(value)]))

/**
 * A store for express-session that keeps sessions in a session store of ours.
 *
 * A session that a request has loaded is saved by its changes: top-level fields that differ from what was
 * loaded are written, all others stay as they are, so that parallel requests lose nothing unless they
 * change the same field (the last one wins). It is only saved if it still exists: a late request does not
 * bring a destroyed session back. Its `save` ends without an error then.
 *
 * All methods take a callback, and return a promise for those who call them without one. `all`, `length`,
 * `ids` and `clear` walk all sessions.
 */
export class OnetripSessionStore extends session.Store {
  readonly #sessions: ReturnType<typeof adapter>
  /** What the store holds, for the session objects of requests that loaded or saved them. */
  readonly #snapshots = new WeakMap<object, Snapshot>()

  /** @throws TypeError unless `store` comes from `createSessionStore`. */
  constructor(store: Pick<SessionStore, 'external'>, options?: AdapterOptions) {
    super()
    this.#sessions = adapter(store, options)
  }

  override createSession(
    ...[request, data]: Parameters<session.Store['createSession']>
  ): session.Session & SessionData {
    const snapshot = snapshotOf(plain(data))
    const loaded = super.createSession(request, data)
    this.#snapshots.set(loaded, snapshot)
    return loaded
  }

  /** The session; null when it is gone or idle, or its cookie has expired. */
  override get(id: string, callback?: (error: unknown, session?: SessionData | null) => void) {
    const found = this.#sessions.get(id) as Promise<SessionData | null>
    return answer(found, callback)
  }

  /** Saves the changes of a loaded session, or creates or replaces one. */
  override set(id: string, saved: SessionData, callback?: Callback) {
    return answer(this.#save(id, saved), callback)
  }

  async #save(id: string, saved: SessionData): Promise<void> {
    const fields = plain(saved)
    const now = snapshotOf(fields)
    const before = this.#snapshots.get(saved)
    if (before === undefined) await this.#sessions.save(id, fields, 'put')
    else {
      const changes: Record<string, unknown> = { cookie: fields.cookie }
      for (const [name, json] of now) if (before.get(name) !== json) changes[name] = fields[name]
      for (const name of before.keys()) if (!now.has(name)) changes[name] = undefined
      await this.#sessions.save(id, changes, 'patch')
    }
    this.#snapshots.set(saved, now)
  }

  /** The session is used now: its idle timeout begins anew, and its cookie's expiry is stored. */
  override touch(id: string, touched: SessionData, callback?: Callback) {
    return answer(this.#sessions.touch(id, touched), callback)
  }

  /** Ends the session. For five minutes no request can create it again. */
  override destroy(id: string, callback?: Callback) {
    return answer(this.#sessions.destroy(id), callback)
  }

  /** All sessions, each with its `id`. */
  override all(callback?: (error: unknown, sessions?: (SessionData & { id: string })[]) => void) {
    const all = this.#sessions.all() as Promise<unknown[]> as Promise<
      (SessionData & { id: string })[]
    >
    return answer(all, callback)
  }

  override length(callback?: (error: unknown, length?: number) => void) {
    return answer(
      this.#sessions.all().then((all) => all.length),
      callback,
    )
  }

  ids(callback?: (error: unknown, ids?: string[]) => void) {
    return answer(
      this.#sessions.all().then((all) => all.map(({ id }) => id)),
      callback,
    )
  }

  /** Ends all sessions that express-session or @fastify/session began; those of tokens stay. */
  override clear(callback?: Callback) {
    return answer(this.#sessions.clear(), callback)
  }
}

/**
 * The store for `session({ store: expressSessionStore(store), … })`.
 *
 * @throws TypeError unless `store` comes from `createSessionStore`.
 */
export const expressSessionStore = (
  store: Pick<SessionStore, 'external'>,
  options?: AdapterOptions,
): OnetripSessionStore => new OnetripSessionStore(store, options)
