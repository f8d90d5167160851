import type { SwappedField } from '../core/data/data-fields.ts'

type Fields = Record<string, unknown>

/** The fields of a session as a request loaded or saved them. */
export interface Snapshot {
  /** Field → JSON text. */
  readonly texts: ReadonlyMap<string, string>
  /** The cookie in Redis. */
  readonly stored: unknown
  /** The cookie of the request, in which the framework has set the missing attributes. */
  readonly cookie: Fields
  readonly user: SessionUser
}

/** The user according to `userOf`: null for none, undefined without that option. */
export type SessionUser = string | null | undefined

/** What to write: undefined fields are removed. */
export interface Changes {
  fields: Fields
  swap?: SwappedField
  /** Undefined: unchanged. */
  user?: SessionUser
}

/** @param cookie The cookie of the request, if the framework has changed it since. */
export function snapshotOf(
  fields: Fields,
  user: SessionUser,
  cookie = fields.cookie as Fields,
): Snapshot {
  const texts = Object.entries(fields).map(
    ([name, value]) => [name, JSON.stringify(value)] as const,
  )
  return { texts: new Map(texts), stored: fields.cookie, cookie, user }
}

/** What a request has changed since the snapshot. */
export function changesSince(before: Snapshot, fields: Fields, user: SessionUser): Changes {
  const changed = Object.entries(fields).filter(
    ([name, value]) => name !== 'cookie' && before.texts.get(name) !== JSON.stringify(value),
  )
  const removed = [...before.texts.keys()].filter((name) => !Object.hasOwn(fields, name))
  const cookie = cookieChange(before, fields.cookie as Fields)
  return {
    ...cookie,
    ...(user !== before.user && { user }),
    fields: Object.fromEntries([
      ...changed,
      ...removed.map((name) => [name, undefined]),
      ...Object.entries(cookie.fields),
    ]),
  }
}

/**
 * The change of the cookie since the snapshot.
 *
 * The framework extends the expiry in each request. A request that changed nothing else must not overwrite the
 * cookie of a parallel request that did, such as "remember me": it writes the cookie only if it is still the one
 * that it loaded.
 */
export function cookieChange({ stored, cookie: before }: Snapshot, cookie: Fields): Changes {
  if (!sameAttributes(before, cookie)) return { fields: { cookie } }
  if (JSON.stringify(stored) === JSON.stringify(cookie)) return { fields: {} }
  return { fields: {}, swap: { field: 'cookie', from: stored, to: cookie } }
}

const ROUNDING_MS = 1_000

/** Whether two cookies differ at most in their expiry, which express-session computes from `originalMaxAge`. */
function sameAttributes(one: Fields, other: Fields): boolean {
  const { expires: _, originalMaxAge: age, ...attributes } = one
  const { expires: __, originalMaxAge: otherAge, ...otherAttributes } = other
  // express-session computes originalMaxAge anew, too: it loses the time between two calls of Date.now().
  const sameAge =
    typeof age === 'number' && typeof otherAge === 'number'
      ? Math.abs(age - otherAge) < ROUNDING_MS
      : age === otherAge
  return sameAge && JSON.stringify(attributes) === JSON.stringify(otherAttributes)
}
