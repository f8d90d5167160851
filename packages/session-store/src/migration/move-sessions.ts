import { hashEntries } from '../core/data/data.ts'
import type { Keys } from '../core/keys.ts'
import type { Command, Operation, Reply } from '../core/operation.ts'
import { KEPT_VIEWS } from '../core/sessions/view-operations.ts'
import { migrationKeys } from './keys.ts'

/** A session that has left the source. */
export interface MovingSession {
  readonly id: string
  readonly user: string
  /** Its login time in the user's list; undefined if it is not in the list. */
  readonly listed: string | undefined
  /** All its records, as JSON that the scripts read. */
  readonly records: string
}

function movingSession(records: string): MovingSession {
  const [id, user, , listed] = JSON.parse(records) as [string, string, unknown, string | false]
  return { id, user, listed: listed === false ? undefined : listed, records }
}

const movingSessions = (replies: readonly Reply[]): MovingSession[] =>
  replies.flatMap((reply) => (typeof reply === 'string' ? [movingSession(reply)] : []))

/**
 * KEYS: login, recent, moving, then viewed, data and the user's list for each session. ARGV: id and user of
 * each. Returns the records of each session that has left the source, now or before.
 *
 * A list of another type is a key of another program. `allow-oom`: the records replace the session's keys, so the
 * script may run when memory is full.
 */
const TAKE = `#!lua flags=allow-oom
local taken = {}
for i = 1, #ARGV / 2 do
  local id, user = ARGV[2 * i - 1], ARGV[2 * i]
  local viewed, data, list = KEYS[3 * i + 1], KEYS[3 * i + 2], KEYS[3 * i + 3]
  local records = redis.call('HGET', KEYS[3], id)
  if not records and redis.call('HGET', KEYS[1], id) == user then
    local listed = redis.pcall('ZSCORE', list, id)
    if type(listed) ~= 'string' then listed = false end
    records = cjson.encode({
      id, user, redis.call('ZSCORE', KEYS[2], id), listed,
      redis.call('ZRANGE', viewed, 0, -1, 'WITHSCORES'), redis.call('HGETALL', data)
    })
    redis.call('HSET', KEYS[3], id, records)
    redis.call('HDEL', KEYS[1], id)
    redis.call('ZREM', KEYS[2], id)
    redis.call('UNLINK', viewed, data)
    if listed then redis.call('ZREM', list, id) end
  end
  taken[i] = records
end
return taken`

/**
 * Ends sessions in the source and saves their records in `moving`, atomically. Does not change a session that is
 * already in `moving`, has ended, or has another user than it was read with. Returns those in `moving`.
 *
 * Keys of each part: login, recent, moving, viewed, data and the user's list of each session.
 */
export function takeSessions(
  keys: Keys,
  sessions: readonly (readonly [id: string, user: string])[],
): Operation<MovingSession[]> {
  const { moving } = migrationKeys(keys)
  const groups = [...Map.groupBy(sessions, ([id]) => keys.login(id)).values()]
  return {
    commands: groups.map((members): Command => {
      const [[first] = ['']] = members
      const own = members.flatMap(([id, user]) => [
        ...[keys.viewed(id), keys.data(id), keys.sessions(user)],
      ])
      const names = [keys.login(first), keys.recent(first), moving(first), ...own]
      return ['EVAL', TAKE, names.length, ...names, ...members.flat()]
    }),
    readOnly: false,
    read: (replies) => movingSessions(replies.flat() as Reply[]),
  }
}

/** Those of the sessions that have left the source and may not have arrived. Keys: moving. */
export function movingOf(keys: Keys, ids: readonly string[]): Operation<MovingSession[]> {
  return {
    commands: ids.map((id): Command => ['HGET', migrationKeys(keys).moving(id), id]),
    readOnly: true,
    read: movingSessions,
  }
}

/** All sessions in `moving`: those of running and of interrupted moves, so not many. */
export function allMoving(keys: Keys): Operation<MovingSession[]> {
  return {
    commands: migrationKeys(keys)
      .allMoving()
      .map((key): Command => ['HGETALL', key]),
    readOnly: true,
    read: (replies) => movingSessions(replies.flatMap(hashEntries).map(([, records]) => records)),
  }
}

const KEYS_OF_EACH = 3

/**
 * KEYS: login, recent, moved, then viewed, data and ended for each session. ARGV: their records. Returns how many
 * sessions arrived.
 */
const INSTALL = `
if redis.call('HEXISTS', KEYS[3], '') == 1 then
  return redis.error_reply('FINISHED the migration is finished')
end
local arrived = 0
for i, records in ipairs(ARGV) do
  local id, user, seen, _, viewed, data = unpack(cjson.decode(records), 1, 6)
  local at = ${KEYS_OF_EACH} * i
  if redis.call('HSETNX', KEYS[3], id, '') == 1 and redis.call('EXISTS', KEYS[at + 3]) == 0 then
    arrived = arrived + 1
    if seen then redis.call('ZADD', KEYS[2], 'GT', seen, id) end
    for j = 1, #viewed, 2 do
      redis.call('ZADD', KEYS[at + 1], 'GT', viewed[j + 1], viewed[j])
    end
    redis.call('ZREMRANGEBYRANK', KEYS[at + 1], 0, -${KEPT_VIEWS + 1})
    if redis.call('EXISTS', KEYS[at + 2]) == 0 then
      for j = 1, #data, 2 do redis.call('HSET', KEYS[at + 2], data[j], data[j + 1]) end
    end
    redis.call('HSETNX', KEYS[1], id, user)
  end
end
return arrived`

/**
 * Creates sessions in the target, each at most once: `moved` has the ids of all that arrived, so that a late retry
 * does not bring back a session that has ended since. Returns how many arrived now.
 *
 * Keys of each part: login, recent, moved; viewed, data and ended of each session.
 *
 * @throws StoreError `ONETRIP_REFUSED` if the migration is finished.
 */
export function installSessions(keys: Keys, sessions: readonly MovingSession[]): Operation<number> {
  const { moved } = migrationKeys(keys)
  const groups = [...Map.groupBy(sessions, ({ id }) => keys.login(id)).values()]
  return {
    commands: groups.map((members): Command => {
      const first = members[0]?.id ?? ''
      const own = members.flatMap(({ id }) => [keys.viewed(id), keys.data(id), keys.ended(id)])
      const names = [keys.login(first), keys.recent(first), moved(first), ...own]
      return ['EVAL', INSTALL, names.length, ...names, ...members.map(({ records }) => records)]
    }),
    readOnly: false,
    read: (replies) => replies.reduce<number>((sum, arrived) => sum + Number(arrived), 0),
  }
}

/** Adds sessions that have arrived to their users' lists. Keys: sessions of each user. */
export function listSessions(keys: Keys, sessions: readonly MovingSession[]): Operation<void> {
  return {
    commands: sessions.flatMap(({ id, user, listed }): Command[] =>
      listed === undefined ? [] : [['ZADD', keys.sessions(user), listed, id]],
    ),
    readOnly: false,
    read: () => undefined,
  }
}

/** Deletes sessions that have arrived from `moving` in the source. Keys of each part: moving. */
export function forgetMoving(keys: Keys, sessions: readonly MovingSession[]): Operation<void> {
  const byKey = Map.groupBy(sessions, ({ id }) => migrationKeys(keys).moving(id))
  return {
    commands: [...byKey].map(
      ([key, members]): Command => ['HDEL', key, ...members.map(({ id }) => id)],
    ),
    readOnly: false,
    read: () => undefined,
  }
}
