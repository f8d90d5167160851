import type { SessionContext } from '../context.ts'
import { copyCommands, readStored, type StoredData, writeData } from '../data/data.ts'
import { checkObject, checkString } from '../input.ts'
import type { Keys } from '../keys.ts'
import { type Command, memberScores, type Operation, type Reply, timeOf } from '../operation.ts'
import type { LoginOptions } from '../store-options.ts'
import type { Tokens } from '../tokens/tokens.ts'
import { GUEST, login } from './session-operations.ts'
import { trimViews } from './view-operations.ts'

/** The records that a login takes over from a guest session. */
export interface GuestRecords {
  /** Items and the times of their last views, Unix seconds with fraction. */
  readonly viewed: readonly (readonly [item: string, time: number])[]
  readonly data: StoredData
}

/**
 * Reads the records of a guest session; undefined if it has ended, is idle, or is a user's. Keys: recent, viewed,
 * data, login.
 */
export function guestRecords(
  keys: Keys,
  id: string,
  idleBefore: number,
): Operation<GuestRecords | undefined> {
  return {
    commands: [
      ['ZSCORE', keys.recent(id), id],
      ['ZRANGE', keys.viewed(id), 0, -1, 'WITHSCORES'],
      ['HGETALL', keys.data(id)],
      ['HGET', keys.login(id), id],
    ],
    readOnly: true,
    read: ([lastSeen, viewed, data, user]) =>
      user === GUEST && timeOf(lastSeen) >= idleBefore
        ? { viewed: memberScores(viewed), data: readStored(data) }
        : undefined,
  }
}

/**
 * `login` with the records of a guest session. The records are written before the login. A partial failure
 * leaves records without a session, which stay until a sweep with `sweepKeys`.
 *
 * Keys: sessions of the user, recent, viewed, data, login, sessions of the user.
 */
export function loginWith(
  keys: Keys,
  input: { id: string; user: string },
  { viewed, data }: GuestRecords,
  now: number,
): Operation<number> {
  const { entry, seen, user, count } = login(keys, input, now).named
  const copies: Command[] = [...viewsOf(keys, input.id, viewed)]
  if (data.version > 0) copies.push(...copyCommands(keys.data(input.id), data))
  return {
    commands: [entry, seen, ...copies, user, count],
    mergeable: true,
    readOnly: false,
    read: (replies) => Number(replies.at(-1)),
  }
}

const viewsOf = (keys: Keys, id: string, viewed: GuestRecords['viewed']): Command[] =>
  viewed.length === 0
    ? []
    : [
        ['ZADD', keys.viewed(id), ...viewed.flatMap(([item, time]) => [time, item])],
        trimViews(keys, id),
      ]

/** KEYS: login, recent, viewed, data. ARGV: id. Returns views and data; nil unless it is a guest session. */
const TAKE = `
if redis.call('HGET', KEYS[1], ARGV[1]) ~= '${GUEST}' then return false end
local viewed = redis.call('ZRANGE', KEYS[3], 0, -1, 'WITHSCORES')
local data = redis.call('HGETALL', KEYS[4])
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('UNLINK', KEYS[3], KEYS[4])
redis.call('PUBLISH', KEYS[1], ARGV[1])
return { viewed, data }`

/**
 * Ends a guest session and returns its records at that moment; undefined if it is no longer a guest session.
 * Later writes to it are rejected or undone. Keys, all in one slot: login, recent, viewed, data.
 */
function takeGuest(keys: Keys, id: string): Operation<GuestRecords | undefined> {
  const own = [keys.login(id), keys.recent(id), keys.viewed(id), keys.data(id)]
  return {
    commands: [['EVAL', TAKE, own.length, ...own, id]],
    readOnly: false,
    read([reply]) {
      if (!Array.isArray(reply)) return undefined
      const [viewed, data] = reply as readonly Reply[]
      return { viewed: memberScores(viewed), data: readStored(data) }
    },
  }
}

/**
 * Overwrites views and data of the new session with these records. Returns whether the session still exists; if
 * not, call `undoRewrite`, which removes the views. Keys, all in one slot: viewed, login, recent, data.
 */
function rewrite(
  keys: Keys,
  id: string,
  { viewed, data }: GuestRecords,
  now: number,
): Operation<boolean> {
  const fields = { set: data.fields, removed: [] }
  const write = { id, mode: 'replace', fields, maxFields: Number.MAX_SAFE_INTEGER } as const
  const last = writeData(keys, write, { now, idleBefore: 0 })
  return {
    commands: [...viewsOf(keys, id, viewed), ...last.commands],
    readOnly: false,
    read: (replies) => last.read(replies.slice(-1)) !== 'gone',
  }
}

const undoRewrite = (keys: Keys, id: string): Operation<void> => ({
  commands: [['UNLINK', keys.viewed(id)]],
  readOnly: false,
  read: () => undefined,
})

/**
 * The session id of `options.from`; undefined if that token is invalid or expired. Clients send this token, so
 * an invalid one must not make the login fail.
 *
 * @throws StoreError `ONETRIP_WRONG_TYPE` unless `from` is a string.
 */
export function guestOf(tokens: Tokens, options: LoginOptions): string | undefined {
  checkObject('options', options)
  if (options.from === undefined) return undefined
  checkString('from', options.from)
  try {
    return tokens.verify(options.from)
  } catch {
    return undefined
  }
}

const isSame = (one: GuestRecords, other: GuestRecords): boolean =>
  one.data.version === other.data.version &&
  JSON.stringify(one.viewed) === JSON.stringify(other.viewed)

/**
 * Logs a user in with a new session that takes over the records of a guest session, and ends that one. The
 * sessions may be on different nodes, so no single command can move the records. Three round trips; two if there
 * is no such guest session; a fourth if the guest's records changed meanwhile, and a fifth if the new session
 * ended meanwhile.
 *
 * The guest session ends only after the new session has its records. A failure loses at most what was written
 * to the guest session during this call. A guest session that could not be ended stays until it is idle.
 *
 * Returns the number of entries in the user's list.
 */
export async function loginFromGuest(
  { runner, keys, now, idleSeconds }: SessionContext,
  { guest, id, user }: { guest: string; id: string; user: string },
): Promise<number> {
  const copied = await runner.run(guestRecords(keys, guest, now() - 1000 * idleSeconds))
  if (copied === undefined) return await runner.run(login(keys, { id, user }, now()))
  const listed = await runner.run(loginWith(keys, { id, user }, copied, now()))
  try {
    const last = await runner.run(takeGuest(keys, guest))
    if (last !== undefined && !isSame(last, copied)) {
      const exists = await runner.run(rewrite(keys, id, last, now()))
      if (!exists) await runner.run(undoRewrite(keys, id))
    }
  } catch {
    // The login has succeeded, with the guest's records from before this call.
  }
  return listed
}
