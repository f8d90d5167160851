import type { Command, Reply, SessionStore } from '@onetrip/session-store'

/** How long an ended session cannot be written again: longer than any request that has loaded it. */
const BLOCKED_SECONDS = 300

/** For a key that better-auth does not let expire. */
const TEN_YEARS = 315_360_000

/** What better-auth generates as the token of a session, which is its key. */
const TOKEN = /^[A-Za-z0-9]{32}$/

/** better-auth's list of the sessions of a user, which it would read and write in two steps. */
const LIST = 'active-sessions-'

/** KEYS: any key. ARGV: value, milliseconds. A session that has ended is an empty text. */
const WRITE = `
if redis.call('GET', KEYS[1]) ~= '' then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end`

/**
 * A `secondaryStorage` for better-auth, on keys of its own. A session that has ended stays ended, even if a request that
 * loaded it before writes it late. The list of a user's sessions is a sorted set, so that parallel logins lose none.
 * The functions throw the errors of the store's `run`.
 *
 * @param store Only its `run` is used. Its idle timeout does not apply: sessions live as long as better-auth says.
 * @param prefix What the keys begin with.
 * @throws TypeError for anything but a session store, or an empty prefix.
 */
export function betterAuthStorage(store: Pick<SessionStore, 'run'>, prefix = 'better-auth:') {
  if (typeof store?.run !== 'function') throw new TypeError('the storage needs a session store')
  if (typeof prefix !== 'string' || !prefix) throw new TypeError('prefix must be a text')

  /** Returns the first reply. */
  const run = (commands: Command[], readOnly = false) =>
    store.run({ commands, readOnly, read: ([reply]) => reply })
  const read = (key: string) => run([['GET', prefix + key]], true)

  return {
    /** Returns null for a session that has ended. */
    async get(key: string) {
      if (!key.startsWith(LIST)) return (await read(key)) || null
      const now = Date.now()
      const reply = await run(
        [['ZRANGE', prefix + key, now, '+inf', 'BYSCORE', 'WITHSCORES']],
        true,
      )
      const flat = (reply as Reply[]).flat() // pairs in RESP3
      const found = flat.flatMap((token, at) =>
        at % 2 ? [] : { token, expiresAt: Number(flat[at + 1]) },
      )
      return found.length ? JSON.stringify(found) : null
    },

    /** @param ttl In seconds. Default: ten years. */
    async set(key: string, value: string, ttl?: number) {
      if (key.startsWith(LIST)) return // it has the sessions that were set
      const ms = Math.ceil(1000 * (ttl || TEN_YEARS))
      const now = Date.now()
      const list = listOf(key, value, prefix)
      // First, so that ending all sessions of the user finds this one.
      if (list) {
        await run([
          ['ZADD', list, now + ms, key],
          ['ZREMRANGEBYSCORE', list, 0, now],
          ['PEXPIRE', list, ms, 'NX'],
          ['PEXPIRE', list, ms, 'GT'],
        ])
      }
      await run([['EVAL', WRITE, 1, prefix + key, value, ms]])
    },

    async delete(key: string) {
      const value = key.startsWith(LIST) ? '' : await read(key)
      if (value === '') return // a list has no value, or the session has ended
      const list = listOf(key, value, prefix)
      // Also a session that does not exist yet: a login may be writing it.
      const isSession = list || TOKEN.test(key)
      const name = prefix + key
      await run([isSession ? ['SET', name, '', 'EX', BLOCKED_SECONDS] : ['DEL', name]])
      if (list) await run([['ZREM', list, key]])
    },

    getAndDelete: (key: string) => run([['GETDEL', prefix + key]]),

    /** Counts in a fixed window. @param ttl In seconds. */
    async increment(key: string, ttl: number) {
      return Number(
        await run([
          ['INCR', prefix + key],
          ['EXPIRE', prefix + key, ttl, 'NX'],
        ]),
      )
    },
  }
}

/** The list that has this session; undefined if the value is no session with this token. */
function listOf(token: string, value: unknown, prefix: string): string | undefined {
  try {
    const { session } = JSON.parse(value as string)
    return session.token === token ? prefix + LIST + session.userId : undefined
  } catch {
    return undefined
  }
}
