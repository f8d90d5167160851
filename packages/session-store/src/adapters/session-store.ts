import type { ExternalSessions } from '../data/external-sessions.ts'
import { publishWarning } from '../diagnostics.ts'
import { StoreError } from '../errors.ts'
import { checkOptionNames, type NamesOf } from '../option-names.ts'
import type { SessionStore } from '../store-types.ts'

/** A session as express-session and @fastify/session store it: JSON, including the cookie's attributes. */
export type StoredSession = { cookie?: { expires?: unknown } } & Record<string, unknown>

/** Called once, asynchronously. */
export type Callback<Result = void> = (error?: unknown, result?: Result) => void

/** A store to move sessions from, such as the `RedisStore` of connect-redis. */
export interface OldStore {
  get(id: string, callback: (error: unknown, session?: unknown) => void): unknown
  destroy(id: string, callback?: (error?: unknown) => void): unknown
}

export interface AdapterOptions {
  /**
   * Moves sessions from this store when they are first read: writes them to the new store, then destroys them
   * in the old one. Destroying a session destroys it in both. A session beyond the store's `dataLimits` stays in
   * the old store, and its user gets a new session.
   */
  migrateFrom?: OldStore
}

const optionNames: NamesOf<AdapterOptions> = { migrateFrom: true }

/** The functions that both adapters share. They return promises and take no callbacks. */
export function adapter(store: Pick<SessionStore, 'external'>, options: AdapterOptions = {}) {
  const sessions = store?.external
  if (typeof sessions?.put !== 'function') {
    throw new TypeError('the first argument must be a store created by createSessionStore')
  }
  checkOptionNames('the session store of a framework', options, optionNames)
  const { migrateFrom } = options
  let warned = false
  let warnedOfUnmovable = false

  async function get(id: string): Promise<StoredSession | null> {
    const found = await read(sessions, id)
    if (found !== undefined || migrateFrom === undefined) return found ?? null
    const old = await new Promise<unknown>((resolve, reject) => {
      migrateFrom.get(id, (error, session) => (error ? reject(error) : resolve(session)))
    })
    if (old) await move(id, old)
    // Not `old`: another request may have moved and changed the session meanwhile.
    return (await read(sessions, id)) ?? null
  }

  /** An old session that the store cannot take, such as one beyond `dataLimits`, stays where it is. */
  async function move(id: string, old: unknown): Promise<void> {
    try {
      const added = await sessions.add(id, plain(old))
      if (added !== 'exists') await destroyOld(id)
    } catch (error) {
      if (!(error instanceof StoreError && error.code === 'ONETRIP_INVALID_INPUT')) throw error
      // Throwing it would fail every request with this cookie, even that of the login page.
      warnOfUnmovable(error)
    }
  }

  async function destroyOld(id: string): Promise<void> {
    if (migrateFrom === undefined) return
    await new Promise<void>((resolve, reject) => {
      migrateFrom.destroy(id, (error) => (error ? reject(error) : resolve()))
    })
  }

  async function destroy(id: string): Promise<void> {
    await sessions.end(id)
    await destroyOld(id)
  }

  /** Writes the session, or destroys it if its cookie has expired. */
  async function save(
    id: string,
    fields: Record<string, unknown>,
    write: 'put' | 'patch',
  ): Promise<void> {
    const expires = expiryOf(fields)
    if (expires <= Date.now()) return await destroy(id)
    warnIfOutlived(expires)
    await sessions[write](id, fields)
  }

  function warnIfOutlived(expires: number): void {
    // The framework computed the expiry up to a second ago.
    const outlives = expires > Date.now() + 1000 * sessions.idleSeconds + 1000
    if (warned || !outlives || expires === Number.POSITIVE_INFINITY) return
    warned = true
    publishWarning({
      code: 'ONETRIP_COOKIE_OUTLIVES_SESSION',
      message: `a session cookie lives longer than the store's idleSeconds (${sessions.idleSeconds}): the session ends first. Raise idleSeconds or lower the cookie's maxAge`,
    })
  }

  function warnOfUnmovable({ message }: StoreError): void {
    if (warnedOfUnmovable) return
    warnedOfUnmovable = true
    publishWarning({
      code: 'ONETRIP_SESSION_NOT_MOVED',
      message: `a session of migrateFrom cannot be moved, and its user gets a new one: ${message}. Raise dataLimits. Further sessions cause no warning`,
    })
  }

  async function all(): Promise<(StoredSession & { id: string })[]> {
    const found: (StoredSession & { id: string })[] = []
    for await (const { id, data } of sessions.walk()) {
      if (expiryOf(data.fields) > Date.now()) found.push({ ...data.fields, id })
    }
    return found
  }

  return {
    get,
    save,
    put: async (id: string, session: unknown) => await save(id, plain(session), 'put'),
    destroy,
    all,

    /** Restarts the idle timeout and stores the expiry of the cookie. Does not bring back an ended session. */
    async touch(id: string, session: unknown): Promise<void> {
      const { cookie } = plain(session)
      await save(id, { cookie }, 'patch')
    },

    async clear(): Promise<void> {
      for await (const { id } of sessions.walk()) await destroy(id)
    },
  }
}

/** The session as plain JSON values: the framework's cookie is an object with `toJSON`. */
export const plain = (session: unknown): Record<string, unknown> =>
  JSON.parse(JSON.stringify(session))

async function read(sessions: ExternalSessions, id: string): Promise<StoredSession | undefined> {
  const fields = (await sessions.read(id))?.fields
  return fields && expiryOf(fields) > Date.now() ? fields : undefined
}

/** When the cookie expires, in milliseconds since 1970; `Infinity` if it has no expiry. */
export function expiryOf({ cookie }: StoredSession): number {
  const expires = cookie?.expires
  const time = typeof expires === 'string' ? Date.parse(expires) : Number.NaN
  return Number.isNaN(time) ? Number.POSITIVE_INFINITY : time
}

/**
 * Passes the result to the callback if there is one, else returns the promise. The callback runs in
 * `process.nextTick`, so that an error it throws does not reject the promise of the store.
 *
 * express-session drops the promise if the application passes no callback, as in `req.session.destroy()`: an error
 * must not become an unhandled rejection, which ends the process. A caller that awaits the promise still gets it.
 */
export function answer<Result>(
  promise: Promise<Result>,
  callback: ((error: unknown, result?: Result) => void) | undefined,
): Promise<Result | undefined> {
  if (callback === undefined) {
    promise.catch(() => undefined)
    return promise
  }
  return promise.then(
    (result) => {
      process.nextTick(callback, null, result)
      return result
    },
    (error: unknown) => {
      process.nextTick(callback, error)
      return undefined
    },
  )
}
