import '../core/node-version.ts'
import { checkFunctions, wrongType } from '../core/input.ts'
import type { SessionStore } from '../core/store.ts'
import { externalSessions } from './external-sessions.ts'

/** The `secondaryStorage` of better-auth. */
export interface SecondaryStorage {
  get(key: string): unknown
  set(key: string, value: string, ttlSeconds?: number | undefined): unknown
  delete(key: string): unknown
  getAndDelete(key: string): unknown
  increment(key: string, ttlSeconds: number): unknown
}

const FUNCTIONS = ['get', 'set', 'delete', 'getAndDelete', 'increment']

/** The token of a session, which is its key. All other keys of better-auth have other characters or lengths. */
const TOKEN = /^[A-Za-z0-9]{32}$/

/** What better-auth stores with the key `session.token`. */
interface StoredValue {
  session?: { token?: unknown; userId?: unknown }
}

/**
 * A `secondaryStorage` for better-auth that keeps its sessions in the store: `store.endUserSessions` and the other
 * functions for the sessions of a user include them, and a session that has ended stays ended, even if a request that
 * loaded it before saves it late. Needs `session.storeSessionInDatabase: false`, which is better-auth's default, and
 * `idleSeconds` of at least `session.expiresIn`: reading a session does not restart its idle timeout.
 *
 * @param others Holds all other keys, such as verifications and rate limits.
 * @throws TypeError unless `createSessionStore` created the store, and `others` has all functions.
 */
export function betterAuthStorage(store: SessionStore, others: SecondaryStorage): SecondaryStorage {
  const sessions = externalSessions(store)
  checkFunctions('the storage of other keys', others, FUNCTIONS)

  return {
    async get(key) {
      const found = TOKEN.test(key) ? await sessions.read(key) : undefined
      if (found === undefined) return await others.get(key)
      const { value, expiresAt } = found.fields
      return Number(expiresAt) > Date.now() ? value : null
    },

    async set(key, value, ttlSeconds) {
      const user = TOKEN.test(key) ? userOf(key, value) : undefined
      const expiresAt = Date.now() + 1000 * (ttlSeconds ?? Number.MAX_SAFE_INTEGER)
      if (user === undefined) await others.set(key, value, ttlSeconds)
      // Without effect if the session has ended.
      else await sessions.put(key, { value, expiresAt }, { user })
    },

    async delete(key) {
      if (TOKEN.test(key)) await sessions.end(key)
      await others.delete(key)
    },

    getAndDelete: (key) => others.getAndDelete(key),
    increment: (key, ttlSeconds) => others.increment(key, ttlSeconds),
  }
}

/** The user of a session; undefined if the value is no session with this token. */
function userOf(token: string, value: string): string | undefined {
  const { session } = parsed(value) ?? {}
  if (session?.token !== token) return undefined
  if (typeof session.userId === 'string') return session.userId
  throw wrongType('session.userId of better-auth must be a string')
}

function parsed(value: string): StoredValue | null {
  try {
    return JSON.parse(value)
  } catch {
    return null
  }
}
