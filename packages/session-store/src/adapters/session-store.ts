import type { SessionData } from '../core/data/data.ts'
import { publishWarning } from '../core/diagnostics.ts'
import { StoreError } from '../core/errors.ts'
import { checkName } from '../core/input.ts'
import { checkOptionNames, type NamesOf } from '../core/option-names.ts'
import type { SessionStore } from '../core/store.ts'
import type { Changes, SessionUser } from './changes.ts'
import { type ExternalSessions, externalSessions } from './external-sessions.ts'
import { limitedWarnings } from './warnings.ts'

/** A session as express-session and @fastify/session store it: JSON, including the cookie's attributes. */
export type StoredSession = { cookie?: { expires?: unknown } | undefined } & Record<string, unknown>

/** Called once, asynchronously. */
export type Callback<Result = void> = (error?: unknown, result?: Result) => void

/** A store to move sessions from, such as the `RedisStore` of connect-redis. */
export interface OldStore {
  get(id: string, callback: (error: unknown, session?: unknown) => void): unknown
  destroy(id: string, callback?: (error?: unknown) => void): unknown
}

export interface AdapterOptions {
  /**
   * Moves sessions from this store when they are first read: writes them to the new store, then destroys them in the
   * old one. Until then the old store is authoritative, also for copies by `importConnectRedis`: a copy ends if the
   * old store does not have the session. Destroying a session destroys it in both, and blocks its id for
   * `idleSeconds`. A session that the store cannot take (one beyond its limits) stays in the old store, and its
   * user gets a new session.
   */
  migrateFrom?: OldStore
  /**
   * Returns the user of a session, undefined or null if it has none: then all functions of the store for a user's
   * sessions include it, such as `endUserSessions`. Called with each session that is loaded or saved. If it throws or
   * returns no valid name (1 to 128 characters, no control characters), that load or save fails, and the session stays
   * as it was. Default: sessions belong to nobody.
   */
  userOf?: UserOf
}

/** @param session As stored: JSON values. Do not change it. */
export type UserOf = (session: StoredSession) => string | null | undefined

const optionNames: NamesOf<AdapterOptions> = { migrateFrom: true, userOf: true }

/**
 * A function that returns the user of a session: null for none, undefined without `userOf`.
 *
 * The function throws StoreError `ONETRIP_WRONG_TYPE` if `userOf` throws or returns something else, and
 * `ONETRIP_INVALID_INPUT` for an invalid name.
 *
 * @throws TypeError if `userOf` is not a function.
 */
export function checkedUserOf(userOf: UserOf | undefined): (session: unknown) => SessionUser {
  if (userOf === undefined) return () => undefined
  if (typeof userOf !== 'function') throw new TypeError('userOf must be a function')
  return (session) => {
    const user = resultOfUserOf(userOf, session as StoredSession)
    if (user === undefined || user === null) return null
    checkName('the user that userOf returns', user)
    return user
  }
}

function resultOfUserOf(userOf: UserOf, session: StoredSession): SessionUser {
  try {
    return userOf(session)
  } catch (cause) {
    throw new StoreError('ONETRIP_WRONG_TYPE', `userOf threw ${nameOf(cause)}`, { cause })
  }
}

/** How often loading a session tries to give it its user. */
const MAX_ATTEMPTS = 3

/** Another request has saved the session, and its user. */
function unlessConflict(error: unknown): void {
  if (!(error instanceof StoreError && error.code === 'ONETRIP_CONFLICT')) throw error
}

/** The functions that both adapters share. They return promises; `answer` serves callbacks. */
export function adapter(store: SessionStore, options: AdapterOptions = {}) {
  const sessions = externalSessions(store)
  checkOptionNames('the session store of a framework', options, optionNames)
  const { migrateFrom } = options
  const userOf = checkedUserOf(options.userOf)
  const warn = limitedWarnings()
  let warned = false
  let warnedOfUnmovable = false

  /** Loads the session. Gives one from before the option `userOf` its user. */
  async function get(id: string): Promise<StoredSession | null> {
    // It reads the session again, because another one may have replaced it. `userOf` may always return another user.
    for (let attempt = 0; ; attempt++) {
      const found = await load(id)
      const user = found && userOf(found.fields)
      if (user === undefined || user === found?.user || attempt === MAX_ATTEMPTS) {
        return found?.fields ?? null
      }
      await sessions.patch(id, {}, { user, ifVersion: found?.version }).catch(unlessConflict)
    }
  }

  async function load(id: string): Promise<Loaded | undefined> {
    let found = await read(sessions, id)
    if (migrateFrom === undefined) return found
    // The old store decides on a session that is missing here, or that is a copy by an import (version 0). The loop
    // asks twice only if an import adds the session in between.
    for (let asked = false; found ? found.version === 0 : !asked; asked = true) {
      const old = await resultOf((callback) => migrateFrom.get(id, callback))
      if (old && !(await move(id, old))) return undefined
      if (!old && found) await sessions.endCopy(id)
      // Not `old`: another request may have moved and changed the session meanwhile.
      found = await read(sessions, id)
    }
    return found
  }

  /**
   * Moves a session from the old store. Returns false, and leaves it there, if the store cannot take it, such as one
   * beyond its limits.
   *
   * `add` blocks the id for as long as the old session may exist. So if this process ends before `destroyOld`, the old
   * session comes back neither instead of the new one nor after its end.
   */
  async function move(id: string, old: unknown): Promise<boolean> {
    try {
      const fields = plain(old)
      const added = await sessions.add(id, fields, { user: userOf(fields) })
      if (added !== 'exists') await destroyOld(id)
      if (added === 'added') await sessions.limitBlock(id, sessions.idleSeconds)
      return true
    } catch (error) {
      if (!(error instanceof StoreError && error.code === 'ONETRIP_INVALID_INPUT')) throw error
      // Throwing it would fail every request with this cookie, even that of the login page.
      warnOfUnmovable(error)
      return false
    }
  }

  async function destroyOld(id: string): Promise<void> {
    if (migrateFrom === undefined) return
    await resultOf((callback) => migrateFrom.destroy(id, callback))
  }

  async function destroy(id: string): Promise<void> {
    // An old process that has loaded the session may save it late, and so bring it back in the old store.
    await sessions.end(id, migrateFrom && sessions.idleSeconds)
    await destroyOld(id)
  }

  /** Writes the session, or destroys it if its cookie has expired. */
  async function save(
    id: string,
    session: StoredSession,
    write: () => Promise<unknown>,
  ): Promise<void> {
    const expires = expiryOf(session)
    if (expires <= Date.now()) return await destroy(id)
    warnIfOutlived(expires)
    await write()
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
      message: `a session of migrateFrom cannot be moved, and its user gets a new one: ${message}. Further sessions cause no warning`,
    })
  }

  async function all(): Promise<(StoredSession & { id: string })[]> {
    const found: (StoredSession & { id: string })[] = []
    for await (const { id, data } of sessions.walk()) {
      if (expiryOf(data.fields) > Date.now()) found.push({ ...data.fields, id })
    }
    return found
  }

  /** An error of the callback must become neither an uncaught exception nor a rejection: both end the process. */
  async function call<Args extends unknown[]>(callback: (...args: Args) => unknown, ...args: Args) {
    try {
      await callback(...args)
    } catch (error) {
      warn('callback', {
        code: 'ONETRIP_CALLBACK_FAILED',
        message: `a callback of the session store threw ${nameOf(error)}; its request may have no response`,
        error,
      })
    }
  }

  return {
    get,
    destroy,
    all,
    userOf,
    ofUser: sessions.ofUser,
    endOthers: sessions.endOthers,

    async put(id: string, session: unknown): Promise<void> {
      const fields = plain(session)
      await save(id, fields, () => sessions.put(id, fields, { user: userOf(fields) }))
    },

    /** Writes the changes of a loaded session. Does not bring back an ended session. */
    async patch(
      id: string,
      session: StoredSession,
      { fields, ...changes }: Changes,
    ): Promise<void> {
      await save(id, session, () => sessions.patch(id, fields, changes))
    },

    /** Restarts the idle timeout and stores the expiry of the cookie. Does not bring back an ended session. */
    async touch(id: string, session: unknown): Promise<void> {
      const { cookie } = plain(session) as StoredSession
      await save(id, { cookie }, () => sessions.patch(id, { cookie }))
    },

    async clear(): Promise<void> {
      for await (const { id } of sessions.walk()) await destroy(id)
    },

    /**
     * Warns if a save fails. Many applications have no handler for its error: express-session reports it after it
     * has sent the response.
     */
    async saving<Result>(save: Promise<Result>): Promise<Result> {
      try {
        return await save
      } catch (error) {
        const reason = error instanceof StoreError ? error.message : nameOf(error)
        warn(`save: ${nameOf(error)}`, {
          code: 'ONETRIP_SESSION_NOT_SAVED',
          message: `a session could not be saved: ${reason}`,
        })
        throw error
      }
    },

    /**
     * Passes the result to the callback if there is one, else returns the promise. What the callback throws is
     * published as a warning; the callback is not called again.
     *
     * express-session drops the promise if the application passes no callback, as in `req.session.destroy()`: an
     * error must not become an unhandled rejection, which ends the process. A caller that awaits the promise still
     * gets it.
     */
    answer<Result>(
      promise: Promise<Result>,
      callback: ((error: unknown, result?: Result) => void) | undefined,
    ): Promise<Result | undefined> {
      if (callback === undefined) {
        promise.catch(() => undefined)
        return promise
      }
      return promise.then(
        async (result) => {
          await call(callback, null, result)
          return result
        },
        async (error: unknown) => {
          await call(callback, error)
          return undefined
        },
      )
    },
  }
}

/** The session as plain JSON values: the framework's cookie is an object with `toJSON`. */
export const plain = (session: unknown): Record<string, unknown> =>
  JSON.parse(JSON.stringify(session))

/** What the old store passes to a callback. Rejects with its error, also if it returns a rejected promise. */
const resultOf = (call: (callback: (error: unknown, result?: unknown) => void) => unknown) =>
  new Promise<unknown>((resolve, reject) => {
    const returned = call((error, result) => (error ? reject(error) : resolve(result)))
    Promise.resolve(returned).catch(reject)
  })

type Loaded = NonNullable<Awaited<ReturnType<ExternalSessions['read']>>>

async function read(sessions: ExternalSessions, id: string): Promise<Loaded | undefined> {
  let found = await sessions.read(id)
  // Another request created the session between two commands of the read.
  if (found && isEmpty(found)) found = await sessions.read(id)
  return found && !isEmpty(found) && expiryOf(found.fields) > Date.now() ? found : undefined
}

const isEmpty = ({ version, fields }: SessionData) =>
  version === 0 && Object.keys(fields).length === 0

/** When the cookie expires, in milliseconds since 1970; `Infinity` if it has no expiry. */
export function expiryOf({ cookie }: StoredSession): number {
  const expires = cookie?.expires
  const time = typeof expires === 'string' ? Date.parse(expires) : Number.NaN
  return Number.isNaN(time) ? Number.POSITIVE_INFINITY : time
}

/** A short name of an error without its message, which may contain data of the application. */
function nameOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error
  return 'code' in error ? `${error.name} ${error.code}` : error.name
}
