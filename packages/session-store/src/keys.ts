import type { Operation } from './command.ts'

/** All names of Redis keys. The store gets every key name from an object of this type. */
export interface Keys {
  /** Hash: session id → user. */
  login(id: string): string
  /** Sorted set: session id → last seen, Unix seconds with fraction. */
  recent(id: string): string
  /** Sorted set of one session: item → time of its last view, Unix seconds with fraction. */
  viewed(id: string): string
  /**
   * Hash of one session: data field → its JSON text; the empty field holds the version, and the field U+0000 the label
   * of the login.
   */
  data(id: string): string
  /** Sorted set: item → negative number of its views. */
  popular(item: string): string
  /** Sorted set of one user: session id → login time, Unix seconds with fraction. */
  sessions(user: string): string
  /** String with an expiry: the number of attempts of one subject in one time window. */
  attempts(subject: string, window: number): string
  /** String with an expiry, of the part of `popular(item)`: the idempotency key of a view. */
  once(item: string, hash: string): string
  /** String with an expiry: the lock of the janitor. */
  janitor(): string
  /** Hash: task of the janitor → when it was last started, Unix seconds with fraction. */
  janitorTasks(): string
  /** All parts of the sessions: groups of keys that are on one server. */
  parts(): readonly SessionsPart[]
  /** All keys of item counts. */
  allPopular(): readonly string[]
  /** Finds the keys `viewed`, `data` (both by session id) and `sessions` (by user) among all keys. */
  find(kind: OwnedKey): KeysFound
  /**
   * Run by `ready`: throws, or its `read` throws, if the data was written with another layout. Omit it if there is none.
   *
   * @param keys These keys, with the prefix of the store.
   */
  check?(keys: Keys): Operation<void>
}

export type OwnedKey = 'viewed' | 'data' | 'sessions'

/** All keys of one kind. */
interface KeysFound {
  /** For `SCAN MATCH`. Other keys may match, too. */
  readonly pattern: string
  /** The id or user in the name of a key; undefined for any other key. */
  ownerOf(key: string): string | undefined
}

/** Finds the keys `<kind>:<owner>`. */
const withoutTag = (kind: OwnedKey): KeysFound => ({
  pattern: `${kind}:?*`,
  ownerOf: (key) => (key.startsWith(`${kind}:`) && key.slice(kind.length + 1)) || undefined,
})

/** The keys of one part of the sessions. */
interface SessionsPart {
  readonly login: string
  readonly recent: string
}

const articleParts = [{ login: 'login:', recent: 'recent:' }]

/** The key names of Redis in Action, for one Redis. The default. */
export const articleKeys: Keys = {
  login: () => 'login:',
  recent: () => 'recent:',
  viewed: (id) => `viewed:${id}`,
  data: (id) => `data:${id}`,
  popular: () => 'viewed:',
  once: (_, hash) => `once:${hash}`,
  attempts: (subject, window) => `limit:${subject}:${window}`,
  sessions: (user) => `sessions:${user}`,
  janitor: () => 'janitor:lock',
  janitorTasks: () => 'janitor:tasks',
  parts: () => articleParts,
  allPopular: () => ['viewed:'],
  find: withoutTag,
}

/** The keys that belong to one session and are removed with it. */
export const recordsOf = (keys: Keys, id: string): string[] => [keys.viewed(id), keys.data(id)]

/** Escapes a text for `SCAN MATCH`, so that it matches only itself. */
const escapedPattern = (text: string): string => text.replace(/[*?[\]\\]/g, '\\$&')

/** No braces: they would be a hash tag, which keeps all keys on one of several servers. */
const prefixPattern = /^[^\p{Cc}\p{Cs}{}]{0,128}$/u

/**
 * Adds `prefix` to all key names of a layout. All processes must use the same prefix. Stores with different
 * prefixes share no keys, unless one prefix begins with another: use `a:` and `b:`, not `a:` and `a:b:`.
 *
 * @throws TypeError unless the prefix is a string of at most 128 characters without braces and control
 *   characters.
 */
export function prefixedKeys(prefix: string, keys: Keys): Keys {
  if (typeof prefix !== 'string' || !prefixPattern.test(prefix)) {
    throw new TypeError(
      'prefix must be a string of at most 128 characters without { } and control characters',
    )
  }
  if (prefix === '') return keys
  const parts = keys
    .parts()
    .map(({ login, recent }) => ({ login: prefix + login, recent: prefix + recent }))
  const allPopular = keys.allPopular().map((key) => prefix + key)
  const prefixed =
    <Args extends unknown[]>(name: (...args: Args) => string) =>
    (...args: Args) =>
      prefix + name(...args)
  return {
    ...keys, // `check`
    login: prefixed(keys.login),
    recent: prefixed(keys.recent),
    viewed: prefixed(keys.viewed),
    popular: prefixed(keys.popular),
    data: prefixed(keys.data),
    once: prefixed(keys.once),
    sessions: prefixed(keys.sessions),
    attempts: prefixed(keys.attempts),
    janitor: prefixed(keys.janitor),
    janitorTasks: prefixed(keys.janitorTasks),
    parts: () => parts,
    allPopular: () => allPopular,
    find(kind) {
      const { pattern, ownerOf } = keys.find(kind)
      return {
        pattern: escapedPattern(prefix) + pattern,
        ownerOf: (key) => (key.startsWith(prefix) ? ownerOf(key.slice(prefix.length)) : undefined),
      }
    },
  }
}
