import {
  MAX_NAME_LENGTH,
  NAME_PATTERN,
  type SessionStore,
  StoreError,
} from '@onetrip/session-store'

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

export const DEFAULT_PREFIX = 'express:'

const known = ['prefix', 'ttl', 'userOf', 'maxSessionsPerUser', 'migrateFrom']

/** @throws TypeError */
export function checkOptions(store: CommandRunner, options: StoreOptions): void {
  const unknown = Object.keys(options).find((name) => !known.includes(name))
  const { prefix, ttl = 1, userOf, maxSessionsPerUser = 1, migrateFrom } = options
  const isPositive = (value: number) => Number.isSafeInteger(value) && value > 0
  const problems = [
    typeof store?.run !== 'function' && 'the first argument must be a session store',
    unknown !== undefined && `there is no option ${unknown}; the options are ${known.join(', ')}`,
    prefix !== undefined &&
      (typeof prefix !== 'string' || prefix === '') &&
      'prefix must be a text',
    !isPositive(ttl) && 'ttl must be a whole number of seconds',
    userOf !== undefined && typeof userOf !== 'function' && 'userOf must be a function',
    !isPositive(maxSessionsPerUser) && 'maxSessionsPerUser must be a whole number from 1',
    migrateFrom !== undefined && typeof migrateFrom !== 'string' && 'migrateFrom must be a prefix',
    migrateFrom === (prefix ?? DEFAULT_PREFIX) && 'migrateFrom and prefix must differ',
  ]
  const problem = problems.find((problem) => problem !== false)
  if (problem) throw new TypeError(problem)
}

const names = new RegExp(NAME_PATTERN, 'u')

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
  if (typeof user !== 'string') {
    throw new StoreError('ONETRIP_WRONG_TYPE', 'the user of a session must be a string')
  }
  if (names.test(user) && [...user].length <= MAX_NAME_LENGTH) return
  const message = `a user must have 1 to ${MAX_NAME_LENGTH} characters and no control characters`
  throw new StoreError('ONETRIP_INVALID_INPUT', message)
}
