import {
  type Command,
  memberScores,
  type Operation,
  type Reply,
  scoreOf,
  timeOf,
} from '../command.ts'
import { LABEL } from '../data/encode.ts'
import { copyData, readStored, type StoredData } from '../data/read.ts'
import { writeData } from '../data/write.ts'
import type { Keys } from '../keys.ts'
import type { Settings } from '../options.ts'
import { trimViews, undoView } from '../views/record.ts'
import { GUEST } from './check.ts'
import { addToList, forgetSessions } from './list.ts'

export interface NewLogin {
  id: string
  user: string
  /** Undefined or empty: none. */
  label?: string | undefined
}

/**
 * Logs a user in. The entry in the user's list is written before the session, so that every
 * session can be found and revoked. A partial failure leaves an entry without a session, which reading the list
 * removes, and records without a session, which stay until a sweep with `sweepKeys`. Returns the number of entries in
 * the list.
 *
 * Keys: sessions of the user, recent, those of `records`, data, login, sessions of the user.
 *
 * @param records Commands that write the session's views and data.
 */
export function login(
  keys: Keys,
  { id, user, label }: NewLogin,
  now: number,
  records: readonly Command[] = [],
): Operation<number> {
  return {
    commands: [
      addToList(keys, user, scoreOf(now), id),
      ['ZADD', keys.recent(id), scoreOf(now), id],
      ...records,
      ...(label ? [['HSET', keys.data(id), LABEL, label] as const] : []),
      ['HSET', keys.login(id), id, user],
      ['ZCARD', keys.sessions(user)],
    ],
    readOnly: false,
    read: (replies) => Number(replies.at(-1)),
  }
}

/** The records that a login takes over from a session. */
export interface OldRecords {
  /** Whether it is a user's session, and so in the user's list. */
  readonly isListed: boolean
  /** Items and the times of their last views, Unix seconds with fraction. */
  readonly viewed: readonly (readonly [item: string, time: number])[]
  readonly data: StoredData
}

/**
 * Reads the records of a session of a guest or of this user; undefined if it has ended, is idle, or is another user's.
 * Keys: recent, viewed, data, login.
 */
export function oldRecords(
  keys: Keys,
  { id, user }: NewLogin,
  idleBefore: number,
): Operation<OldRecords | undefined> {
  return {
    commands: [
      ['ZSCORE', keys.recent(id), id],
      ['ZRANGE', keys.viewed(id), 0, -1, 'WITHSCORES'],
      ['HGETALL', keys.data(id)],
      ['HGET', keys.login(id), id],
    ],
    readOnly: true,
    read: ([lastSeen, viewed, data, owner]) =>
      (owner === GUEST || owner === user) && timeOf(lastSeen) >= idleBefore
        ? recordsFrom(viewed, data, owner)
        : undefined,
  }
}

const recordsFrom = (viewed: Reply | undefined, data: Reply | undefined, owner: Reply) => ({
  isListed: owner !== GUEST,
  viewed: memberScores(viewed),
  data: readStored(data),
})

/** `login` with the records of another session. Keys: those of `login`, and viewed. */
export function loginWith(
  keys: Keys,
  input: NewLogin,
  { viewed, data }: OldRecords,
  now: number,
): Operation<number> {
  const copies = data.version > 0 ? [copyData(keys.data(input.id), data)] : []
  return login(keys, input, now, [...viewsOf(keys, input.id, viewed), ...copies])
}

const viewsOf = (keys: Keys, id: string, viewed: OldRecords['viewed']): Command[] =>
  viewed.length === 0
    ? []
    : [
        ['ZADD', keys.viewed(id), ...viewed.flatMap(([item, time]) => [time, item])],
        trimViews(keys, id),
      ]

/** KEYS: login, recent, viewed, data. ARGV: id, user. Returns views, data and owner: a guest or this user; else nil. */
const TAKE = `-- take records
local owner = redis.call('HGET', KEYS[1], ARGV[1])
if owner ~= '${GUEST}' and owner ~= ARGV[2] then return false end
local viewed = redis.call('ZRANGE', KEYS[3], 0, -1, 'WITHSCORES')
local data = redis.call('HGETALL', KEYS[4])
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('UNLINK', KEYS[3], KEYS[4])
redis.call('PUBLISH', KEYS[1], ARGV[1])
return { viewed, data, owner }`

/**
 * Ends a session of a guest or of this user, and returns its records. Returns undefined if there is no such session.
 * Later writes to it are rejected or undone. Keys, all of one part: login, recent, viewed, data.
 */
function takeOld(keys: Keys, { id, user }: NewLogin): Operation<OldRecords | undefined> {
  const own = [keys.login(id), keys.recent(id), keys.viewed(id), keys.data(id)]
  return {
    commands: [['EVAL', TAKE, own.length, ...own, id, user]],
    readOnly: false,
    read([reply]) {
      if (!Array.isArray(reply)) return undefined
      const [viewed, data, owner] = reply as [Reply, Reply, Reply]
      return recordsFrom(viewed, data, owner)
    },
  }
}

/**
 * Overwrites views and data of the new session with these records. Returns whether the session still exists; if
 * not, call `undoView`, which removes the views. Keys, all of one part: viewed, login, recent, data.
 */
function rewrite(
  keys: Keys,
  { id, label }: NewLogin,
  { viewed, data }: OldRecords,
  now: number,
): Operation<boolean> {
  const own = label ? [[LABEL, label] as const] : []
  const fields = { set: [...data.fields, ...own], removed: [] }
  const last = writeData(keys, { id, mode: 'replace', fields }, { now, idleBefore: 0 })
  return {
    commands: [...viewsOf(keys, id, viewed), ...last.commands],
    readOnly: false,
    read: (replies) => last.read(replies.slice(-1)) !== 'gone',
  }
}

const isSame = (one: OldRecords, other: OldRecords): boolean =>
  one.data.version === other.data.version &&
  JSON.stringify(one.viewed) === JSON.stringify(other.viewed)

/**
 * Logs a user in with a new session that takes over the records of an old one, of a guest or of the same user, and ends
 * that one. The sessions may be on different nodes, so no single command can move the records. Three round trips; two if
 * there is no such session; a fourth if its records changed meanwhile, and a fifth if the new session ended meanwhile.
 *
 * The old session ends only after the new session has its records. A failure loses at most what was written to the
 * old session during this call. An old session that could not be ended stays until it is idle.
 *
 * Returns the number of entries in the user's list, without that of the old session.
 */
export async function loginFrom(
  runner: Pick<Settings['runner'], 'run'>,
  { keys, now, idleSeconds }: Pick<Settings, 'keys' | 'now' | 'idleSeconds'>,
  { old, session: input }: { old: string; session: NewLogin },
): Promise<number> {
  const { id, user } = input
  const from = { id: old, user }
  const copied = await runner.run(oldRecords(keys, from, now() - 1000 * idleSeconds))
  if (copied === undefined) return await runner.run(login(keys, input, now()))
  let listed = await runner.run(loginWith(keys, input, copied, now()))
  try {
    const last = await runner.run(takeOld(keys, from))
    if (last?.isListed) {
      listed--
      // Reading the list would remove the entry, too.
      runner.run(forgetSessions(keys, user, [old])).catch(() => undefined)
    }
    if (last !== undefined && !isSame(last, copied)) {
      const exists = await runner.run(rewrite(keys, input, last, now()))
      if (!exists) await runner.run(undoView(keys, { id }))
    }
  } catch {
    // The login has succeeded, with the old session's records from before this call.
  }
  return listed
}
