import { type Keys, migrationKeys } from '../keys.ts'
import { type Command, KEPT_VIEWS, type Reply, type Update } from '../updates.ts'

/** A session on its way: its records as the source had them, and what the steps need to know of it. */
export interface Traveller {
  readonly id: string
  readonly user: string
  /** When it logged in, as the user's list has it; undefined if the list does not name it. */
  readonly listed: string | undefined
  /** All of it, as JSON that only the scripts read. */
  readonly records: string
}

function travellerOf(records: string): Traveller {
  const [id, user, , listed] = JSON.parse(records) as [string, string, unknown, string | false]
  return { id, user, listed: listed === false ? undefined : listed, records }
}

const travellersOf = (replies: readonly Reply[]): Traveller[] =>
  replies.flatMap((reply) => (typeof reply === 'string' ? [travellerOf(reply)] : []))

/**
 * KEYS: login, recent, moving, then viewed, data and the user's list for each session. ARGV: id and user of
 * each. Replies the records of each that has left the source, now or before.
 *
 * The list is another program's key if it has another type. The records replace what they hold, so it runs in
 * a full memory, too.
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
 * Takes sessions out of the source: in one step of the server each of them ends there and its records go
 * to `moving`. A session that is already there, or ended, or changed its user since it was read, stays as it
 * is. Reads those that are in `moving` now.
 *
 * Keys of each part: login, recent, moving, viewed, data and the user's list of each session.
 */
export function takeSessions(
  keys: Keys,
  sessions: readonly (readonly [id: string, user: string])[],
): Update<Traveller[]> {
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
    read: (replies) => travellersOf(replies.flat() as Reply[]),
  }
}

/** Those of the sessions that left the source and may not have arrived. Keys: moving. */
export function movingOf(keys: Keys, ids: readonly string[]): Update<Traveller[]> {
  return {
    commands: ids.map((id): Command => ['HGET', migrationKeys(keys).moving(id), id]),
    readOnly: true,
    read: travellersOf,
  }
}

/** ioredis makes an object of the reply to HGETALL unless it is framed. */
const valuesOf = (reply: Reply): Reply[] =>
  Array.isArray(reply) ? reply.filter((_, index) => index % 2 === 1) : Object.values(reply ?? {})

/** All of them: as many as the migrations in progress move at a time, or moved when they were killed. */
export function allMoving(keys: Keys): Update<Traveller[]> {
  return {
    commands: migrationKeys(keys)
      .allMoving()
      .map((key): Command => ['HGETALL', key]),
    readOnly: true,
    read: (replies) => travellersOf(replies.flatMap(valuesOf)),
  }
}

const KEYS_OF_EACH = 3

/**
 * KEYS: login, recent, moved, then viewed, data and ended for each session. ARGV: their records. Replies how
 * many arrived.
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
 * Installs sessions in the target, each once for all times: `moved` remembers it, so that a late repetition
 * does not bring back a session that has ended since. Reads how many arrived now.
 *
 * Keys of each part: login, recent, moved; viewed, data and ended of each session.
 *
 * @throws StoreError `ONETRIP_REFUSED` when the migration is finished.
 */
export function installSessions(keys: Keys, sessions: readonly Traveller[]): Update<number> {
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

/** Puts sessions that have arrived into their users' lists. Keys: sessions of each user. */
export function listSessions(keys: Keys, sessions: readonly Traveller[]): Update<void> {
  return {
    commands: sessions.flatMap(({ id, user, listed }): Command[] =>
      listed === undefined ? [] : [['ZADD', keys.sessions(user), listed, id]],
    ),
    readOnly: false,
    read: () => undefined,
  }
}

/** Forgets, in the source, sessions that have arrived. Keys of each part: moving. */
export function forgetMoving(keys: Keys, sessions: readonly Traveller[]): Update<void> {
  const byKey = Map.groupBy(sessions, ({ id }) => migrationKeys(keys).moving(id))
  return {
    commands: [...byKey].map(
      ([key, members]): Command => ['HDEL', key, ...members.map(({ id }) => id)],
    ),
    readOnly: false,
    read: () => undefined,
  }
}
