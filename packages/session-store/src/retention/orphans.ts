import type { Command, Operation } from '../command.ts'
import { type Keys, recordsOf } from '../keys.ts'
import { END_DOOMED, type EndedSession, readEnded } from './retention.ts'

/**
 * KEYS: login, recent, and the viewed and data keys of each session. ARGV: a JSON object: `unseen` (whether to also
 * remove sessions without a last-seen time), `settledBefore`, `ids`. Returns the same as EVICT. Keeps keys of other
 * programs: views are a sorted set, and data is a hash with a version or a label (LABEL, \0).
 */
const REMOVE_ORPHANS = `-- remove orphans
local found = cjson.decode(ARGV[1])
local doomed, records, users = {}, {}, {}
local function add(key, command, ...)
  local size = redis.pcall(command, key, ...)
  local found = type(size) == 'number' and size > 0
  if found then records[#records + 1] = key end
  return found
end
local owners = redis.call('HMGET', KEYS[1], unpack(found.ids))
local scores = redis.call('ZMSCORE', KEYS[2], unpack(found.ids))
for i, id in ipairs(found.ids) do
  local score = tonumber(scores[i])
  users[i] = false
  local nobody = not owners[i] and (not score or score < found.settledBefore)
  if nobody or (found.unseen and not score) then
    doomed[#doomed + 1] = id
    add(KEYS[2 * i + 1], 'ZCARD')
    local data = KEYS[2 * i + 2]
    if not add(data, 'HEXISTS', '') then add(data, 'HEXISTS', '\\0') end
    users[i] = owners[i] or ''
  end
end
${END_DOOMED}`

/**
 * Removes the leftovers of these sessions if they have no login, and, with `unseen`, also if they have a login but
 * no last-seen time. Keeps sessions that are complete by now, and logins that may be in progress: only
 * `updateToken` creates a session with an old id, and it writes `recent` first.
 *
 * Keys of each part: login, recent, viewed and data of each session.
 */
export function removeOrphans(
  keys: Keys,
  ids: readonly string[],
  { unseen, settledBefore }: { unseen: boolean; settledBefore: number },
): Operation<EndedSession[]> {
  const groups = [...Map.groupBy(ids, (id) => keys.login(id)).values()]
  return {
    commands: groups.map((members): Command => {
      const [first = ''] = members
      const records = members.flatMap((id) => recordsOf(keys, id))
      const own = [keys.login(first), keys.recent(first), ...records]
      const found = { unseen, settledBefore, ids: members }
      return ['EVAL', REMOVE_ORPHANS, own.length, ...own, JSON.stringify(found)]
    }),
    readOnly: false,
    read: (replies) => groups.flatMap((members, index) => readEnded(members, replies[index])),
  }
}

/** The oldest entries of each user's list, at most `limit` of each. Keys: sessions of each user. */
export function oldestOfUsers(
  keys: Keys,
  users: readonly string[],
  limit: number,
): Operation<{ id: string; user: string }[]> {
  return {
    commands: users.map((user): Command => ['ZRANGE', keys.sessions(user), 0, limit - 1]),
    readOnly: true,
    read: (replies) =>
      users.flatMap((user, index) =>
        (replies[index] as readonly string[]).map((id) => ({ id, user })),
      ),
  }
}
