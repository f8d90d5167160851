import type { Fields } from './options.ts'

/** The fields of a session as a request loaded or saved them. */
export interface Snapshot {
  /** Field → JSON text. */
  readonly texts: ReadonlyMap<string, string>
  /** The cookie of the request, in which the framework has set the missing attributes. */
  readonly cookie: Fields
  readonly user: string | null | undefined
}

/** What to write. Undefined fields are removed. */
export interface Changes {
  fields: Fields
  /** The text of the cookie in Redis, unless the request has changed the cookie. See `WriteOptions`. */
  cookie?: string | undefined
  /** Undefined: unchanged. */
  user?: string | null | undefined
}

export const snapshotOf = (
  fields: Fields,
  user: Snapshot['user'],
  cookie = fields.cookie as Fields,
): Snapshot => ({
  texts: new Map(Object.entries(fields).map(([name, value]) => [name, JSON.stringify(value)])),
  cookie,
  user,
})

/** What a request has changed since the snapshot. */
export function changesSince(before: Snapshot, fields: Fields, user: Snapshot['user']): Changes {
  const changed = Object.entries(fields).filter(
    ([name, value]) => before.texts.get(name) !== JSON.stringify(value),
  )
  const removed = [...before.texts.keys()].filter((name) => !Object.hasOwn(fields, name))
  return {
    fields: Object.fromEntries([...changed, ...removed.map((name) => [name, undefined])]),
    cookie: cookieUnlessChanged(before, fields.cookie as Fields),
    user: user === before.user ? undefined : user,
  }
}

/**
 * The framework extends the expiry in each request. A request that changed nothing else must not overwrite the cookie
 * of a parallel request that did, such as "remember me": it writes the cookie only if it is the one that it loaded.
 */
export const cookieUnlessChanged = (before: Snapshot, cookie: Fields): string | undefined =>
  hasSameAttributes(before.cookie, cookie) ? before.texts.get('cookie') : undefined

const ROUNDING_MS = 1_000

/** Whether two cookies differ at most in their expiry, which express-session computes from `originalMaxAge`. */
function hasSameAttributes(one: Fields, other: Fields): boolean {
  const { expires: _, originalMaxAge: age, ...attributes } = one
  const { expires: __, originalMaxAge: otherAge, ...otherAttributes } = other
  // express-session computes originalMaxAge anew, too: it loses the time between two calls of Date.now().
  const isSameAge =
    typeof age === 'number' && typeof otherAge === 'number'
      ? Math.abs(age - otherAge) < ROUNDING_MS
      : age === otherAge
  return isSameAge && JSON.stringify(attributes) === JSON.stringify(otherAttributes)
}
