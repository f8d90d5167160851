/**
 * A session is a hash: field → JSON text, and `''` → its user. A session that has ended is a hash with only `''` → `''`
 * until it expires: a late save finds it and writes nothing.
 *
 * A script writes before it removes: if Redis has no memory left, it fails before it has changed anything.
 */

/** The first argument of `WRITE`. */
export interface WriteOptions {
  /** Replace the session or create it. Otherwise change it, if it still exists. */
  create?: boolean
  /** Until the session expires. Undefined: unchanged. */
  ms?: number
  /** The text of the cookie in Redis. If it is another one now, neither the cookie nor the expiry is written. */
  cookie?: string | undefined
  /** The new user, `''` for none. Undefined: unchanged. */
  user?: string | undefined
  /** Write only if this is the user, `''` for none. */
  userWas?: string | undefined
  /** Whether the session is in the list of the new user. */
  isListed?: boolean
}

/** What `WRITE` returns. `unlisted`: nothing was written, because the session is not in the list of its new user. */
export type Written = 'written' | 'unlisted' | 'gone'

/** KEYS: session. ARGV: `WriteOptions` as JSON; then name, JSON text or `''` (remove), name, … */
export const WRITE = `-- save session
local key, options = KEYS[1], cjson.decode(ARGV[1])
local user = redis.call('HGET', key, '')
if user == '' or not options.create and redis.call('EXISTS', key) == 0 then return 'gone' end
if options.userWas and options.userWas ~= (user or '') then return 'gone' end
if options.user and options.user ~= '' and options.user ~= user and not options.isListed then return 'unlisted' end
local isMine = not options.cookie or options.cookie == redis.call('HGET', key, 'cookie')
local kept, removed = {}, {}
for at = 2, #ARGV, 2 do
  local name, text = ARGV[at], ARGV[at + 1]
  if text == '' then table.insert(removed, name)
  elseif isMine or name ~= 'cookie' then redis.call('HSET', key, name, text) end
  kept[name] = true
end
if options.user and options.user ~= '' then redis.call('HSET', key, '', options.user) end
if options.user == '' then redis.call('HDEL', key, '') end
if options.create then
  kept[''] = true
  for _, name in ipairs(redis.call('HKEYS', key)) do
    if not kept[name] then table.insert(removed, name) end
  end
end
for _, name in ipairs(removed) do redis.call('HDEL', key, name) end
if isMine and options.ms then redis.call('PEXPIRE', key, options.ms) end
return 'written'`

/**
 * KEYS: session, and the key of connect-redis if it may exist. ARGV: how many seconds no save can create the session
 * again, the user whose session it must be or `''`. Returns the user, `''` for none; nothing if there is no such session.
 */
export const END = `-- end session
local user = redis.call('HGET', KEYS[1], '')
if ARGV[2] ~= '' and ARGV[2] ~= user then return end
local found = redis.call('EXISTS', KEYS[1]) == 1 and user ~= ''
redis.call('DEL', unpack(KEYS))
redis.call('HSET', KEYS[1], '', '')
redis.call('EXPIRE', KEYS[1], ARGV[1])
if found then return user or '' end`

/**
 * Moves a session of connect-redis, unless another process has moved or ended it, or its text has changed.
 *
 * KEYS: session, key of connect-redis. ARGV: the text of that key, ms if it has no expiry, then name, JSON text, …
 */
export const MOVE = `-- move session
if redis.call('EXISTS', KEYS[1]) == 1 or redis.call('GET', KEYS[2]) ~= ARGV[1] then return end
for at = 3, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1]) end
local ms = redis.call('PTTL', KEYS[2])
redis.call('PEXPIRE', KEYS[1], ms > 0 and ms or ARGV[2])
redis.call('DEL', KEYS[2])`

/** Removes entries of a user's list, unless they are newer. KEYS: list. ARGV: id, score, id, … */
export const FORGET = `-- forget sessions
for at = 1, #ARGV, 2 do
  if redis.call('ZSCORE', KEYS[1], ARGV[at]) == ARGV[at + 1] then redis.call('ZREM', KEYS[1], ARGV[at]) end
end`
