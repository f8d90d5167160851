import { plain } from './encoding.ts'
import type { Fields } from './options.ts'
import { type Changes, RedisSessions } from './redis-sessions.ts'

/** A session as a request loaded or saved it. */
export interface Snapshot {
  readonly id: string
  /** Field → JSON text. */
  readonly texts: ReadonlyMap<string, string>
  /** The cookie of the request, in which the framework has set the missing attributes. */
  readonly cookie: Fields
  readonly user: string | null | undefined
}

/** Sessions in Redis, and what each request has loaded: a save writes what has changed since then. */
export class SessionsOfRequests extends RedisSessions {
  /** By the session object of a request. */
  readonly #snapshots = new WeakMap<object, Snapshot>()

  snapshotOf(id: string, fields: Fields, cookie = fields.cookie as Fields): Snapshot {
    const texts = new Map(
      Object.entries(fields).map(([name, value]) => [name, JSON.stringify(value)]),
    )
    return { id, texts, cookie, user: this.userOf(fields) }
  }

  /** Notes what the object, the session of a request, has loaded. */
  loaded(object: object, snapshot: Snapshot): void {
    this.#snapshots.set(object, snapshot)
  }

  /** Saves the changes since the object was loaded or saved; creates or replaces any other session. */
  async save(id: string, object: object, loaded?: Snapshot): Promise<void> {
    const before = this.#snapshots.get(object) ?? loaded
    const fields = plain(object)
    const saved = this.snapshotOf(id, fields)
    if (before === undefined) await this.create(id, fields)
    else await this.change(id, fields, changesSince(before, saved, fields))
    this.loaded(object, saved)
  }

  /** Stores the expiry of the cookie. */
  async touch(id: string, object: object): Promise<void> {
    const before = this.#snapshots.get(object)
    const fields = plain(object)
    const cookie = fields.cookie as Fields
    const expected = before && cookieUnlessChanged(before, cookie)
    await this.change(id, fields, { fields: { cookie }, cookie: expected })
    if (before === undefined) return
    const texts = new Map(before.texts).set('cookie', JSON.stringify(cookie))
    this.loaded(object, { ...before, texts, cookie })
  }
}

function changesSince(
  before: Snapshot,
  { texts, cookie, user }: Snapshot,
  fields: Fields,
): Changes {
  const names = [...before.texts.keys(), ...texts.keys()]
  const changed = names.filter((name) => before.texts.get(name) !== texts.get(name))
  return {
    fields: Object.fromEntries(
      changed.map((name) => [name, texts.has(name) ? fields[name] : undefined]),
    ),
    cookie: cookieUnlessChanged(before, cookie),
    user: user === before.user ? undefined : user,
  }
}

/**
 * The frameworks extend the expiry in each request. A request that changed nothing else must not overwrite the cookie
 * of a parallel request that did, such as "remember me": it writes the cookie only if it is the one that it loaded.
 */
const cookieUnlessChanged = (before: Snapshot, cookie: Fields): string | undefined =>
  hasSameAttributes(before.cookie, cookie) ? before.texts.get('cookie') : undefined

const ROUNDING_MS = 1_000

/** Whether two cookies differ at most in their expiry, which express-session computes from `originalMaxAge`. */
function hasSameAttributes(one: Fields, other: Fields): boolean {
  // `originalExpires`: that of @fastify/session, when it loaded the cookie.
  const { expires: _, originalExpires: _1, originalMaxAge: age, ...attributes } = one
  const { expires: _2, originalExpires: _3, originalMaxAge: otherAge, ...otherAttributes } = other
  // express-session computes originalMaxAge anew, too: it loses the time between two calls of Date.now().
  const isSameAge =
    typeof age === 'number' && typeof otherAge === 'number'
      ? Math.abs(age - otherAge) < ROUNDING_MS
      : age === otherAge
  return isSameAge && JSON.stringify(attributes) === JSON.stringify(otherAttributes)
}
