import { checkedOptions, checkName, type SessionStore, StoreError } from '@onetrip/session-store'

/** All that this package uses of a `SessionStore`. */
export type CommandRunner = Pick<SessionStore, 'run'>

export type Fields = Record<string, unknown>

/** A session as the frameworks store it: JSON values, with the attributes of its cookie. */
export type StoredSession = Fields & { cookie?: { expires?: unknown } | undefined }

export interface StoreOptions {
  /** What the keys begin with. Default `express:`. A brace that it opens is closed after the id of the session. */
  prefix?: string
  /** Seconds until a session ends whose cookie has no expiry. Each save and touch restarts them. Default: one day. */
  ttl?: number
  /**
   * Returns the user of a session; undefined or null if it has none. Called with each session that is loaded or
   * saved. If it throws or returns no valid name (1 to 128 characters, no control characters), the load or save fails.
   */
  userOf?: (session: StoredSession) => string | null | undefined
  /** One more login of a user ends the user's oldest session. Default 100; needs `userOf`. */
  maxSessionsPerUser?: number
  /**
   * The prefix of connect-redis in the same database, usually `sess:`. Its sessions then move when they are first read.
   * No process may use connect-redis any more.
   */
  migrateFrom?: string
}

const defaults = {
  prefix: 'express:',
  ttl: 86_400,
  userOf: undefined,
  maxSessionsPerUser: 100,
  migrateFrom: undefined,
}

const positive = { min: 1, max: Number.MAX_SAFE_INTEGER, integer: true }

/** Returns the options with their defaults. @throws TypeError */
export function checked(store: CommandRunner, options: StoreOptions) {
  const ranges = { ttl: positive, maxSessionsPerUser: positive }
  const all = checkedOptions('the store for sessions', options, defaults, ranges)
  const { prefix, userOf, migrateFrom = '' } = all
  const problems = [
    typeof store?.run !== 'function' && 'the first argument must be a session store',
    (typeof prefix !== 'string' || prefix === '') && 'prefix must be a text',
    userOf !== undefined && typeof userOf !== 'function' && 'userOf must be a function',
    typeof migrateFrom !== 'string' && 'migrateFrom must be a prefix',
    migrateFrom === prefix && 'migrateFrom and prefix must differ',
  ]
  const problem = problems.find((problem) => problem !== false)
  if (problem) throw new TypeError(problem)
  return all
}

/** Returns the user of a session: null for none. Undefined if users are not known. */
export function userBy(userOf: StoreOptions['userOf'], session: Fields): string | null | undefined {
  if (userOf === undefined) return undefined
  let user: unknown
  try {
    user = userOf(session)
  } catch (cause) {
    const name = cause instanceof Error ? cause.name : typeof cause
    throw new StoreError('ONETRIP_WRONG_TYPE', `userOf threw ${name}`, { cause })
  }
  if (user === undefined || user === null) return null
  checkUser(user)
  return user
}

/** @throws StoreError `ONETRIP_WRONG_TYPE` or `ONETRIP_INVALID_INPUT` */
export function checkUser(user: unknown): asserts user is string {
  checkName('the user of a session', user as string)
}
