import { type Command, type Operation, type Reply, writing } from '../command.ts'
import { StoreError } from '../errors.ts'
import { type Keys, recordsOf } from '../keys.ts'
import type { Settings } from '../options.ts'
import { entriesOf, firstEntries, forgetSessions, readEntries, STEP_SIZE } from './list.ts'

/** Tells all processes that a session has ended (`watchSession`). The channel has the name of the key: login. */
export const publishEnd = (keys: Keys, id: string): Command => ['PUBLISH', keys.login(id), id]

/** Which sessions a script ends. Times in Unix seconds. */
export interface EndIf {
  /**
   * A login that began earlier is complete or has failed. Without `oldest`, the script ends halves: a login without a
   * last-seen time, or remains without a login.
   */
  settledBefore: number
  /** Ends sessions that are idle, or beyond the number to keep. Skips those that were refreshed since they were read. */
  oldest?: { idleBefore: number; keep: number; seen: readonly number[] }
}

/**
 * KEYS: login, recent, then viewed and data of each session. ARGV: a JSON object: `ids`, and perhaps the properties of
 * `EndIf`. Returns for each the user; '' for a guest, and for remains without a login; nil if nothing ended.
 */
const END = `-- end sessions
local asked = cjson.decode(ARGV[1])
local ids, settledBefore, oldest, users = asked.ids, asked.settledBefore, asked.oldest, {}
local owners = redis.call('HMGET', KEYS[1], unpack(ids))
local scores = redis.call('ZMSCORE', KEYS[2], unpack(ids))
local surplus = oldest and redis.call('ZCARD', KEYS[2]) - oldest.keep
for i, id in ipairs(ids) do
  local owner, score, ends = owners[i], tonumber(scores[i]), true
  if settledBefore then
    local settled = owner or (score or 0) < settledBefore
    if oldest then
      ends = settled and score == oldest.seen[i] and (score < oldest.idleBefore or surplus > 0)
    else
      ends = settled and not (owner and score)
    end
  end
  users[i] = ends and (owner or settledBefore and '') or false
  if ends then
    surplus = surplus and surplus - 1
    redis.call('HDEL', KEYS[1], id)
    redis.call('ZREM', KEYS[2], id)
    redis.call('UNLINK', KEYS[2 * i + 1], KEYS[2 * i + 2])
    redis.call('PUBLISH', KEYS[1], id)
  end
end
return users`

/**
 * Ends sessions. Returns the user of each session that existed, `GUEST` for a guest session or for remains.
 *
 * One script for all sessions that share the key login: no failure leaves a part of a session, or ends one without
 * telling those that wait for its end. A concurrent view or refresh cannot bring a session back: each only changes records
 * that exist, or undoes what it wrote (`recordOrUndo` in views/record.ts).
 *
 * Keys of each: login, recent, viewed, data.
 *
 * @param endIf Default: ends each of them. With `oldest`, all share the key login.
 */
export function endSessions(
  keys: Keys,
  ids: readonly string[],
  endIf?: EndIf,
): Operation<(string | undefined)[]> {
  const groups = [...Map.groupBy(ids, (id) => keys.login(id))]
  return {
    commands: groups.map(([login, members]): Command => {
      const records = members.flatMap((id) => recordsOf(keys, id))
      const own = [login, keys.recent(members[0] ?? ''), ...records]
      return ['EVAL', END, own.length, ...own, JSON.stringify({ ids: members, ...endIf })]
    }),
    readOnly: false,
    read(replies) {
      const users = new Map(
        groups.flatMap(([, members], place) =>
          members.map((id, index) => [id, (replies[place] as readonly Reply[])[index]] as const),
        ),
      )
      return ids.map((id) => (users.get(id) ?? undefined) as string | undefined)
    },
  }
}

/**
 * Ends a session of any user. Returns whether it existed. Does not wait for the removal of its entry: reading the list
 * would remove it, too.
 */
export async function endSession({ runner, keys }: Settings, id: string): Promise<boolean> {
  const [user] = await runner.run(endSessions(keys, [id]))
  if (user) runner.run(forgetSessions(keys, user, [id])).catch(() => undefined)
  return user !== undefined
}

/**
 * Ends sessions, all or those that meet the conditions, and then removes them from their users' lists. Returns their
 * number. If the second round trip fails, reading the lists removes the entries.
 */
export async function endAndForget(
  { runner, keys }: Pick<Settings, 'runner' | 'keys'>,
  ids: readonly string[],
  endIf?: EndIf,
): Promise<number> {
  if (ids.length === 0) return 0
  const users = await runner.run(endSessions(keys, ids, endIf))
  const byUser = Map.groupBy(ids, (_, index) => users[index])
  const commands = [...byUser].flatMap(([user, own]) =>
    user ? forgetSessions(keys, user, own).commands : [],
  )
  if (commands.length > 0) await runner.run(writing(...commands)).catch(() => undefined)
  return users.filter((user) => user !== undefined).length
}

/**
 * Ends all sessions in a user's list. Yields the number of sessions ended in each step; see `totalEnded`.
 *
 * @param except The id of a session to keep.
 */
export async function* endAll(
  context: Settings,
  user: string,
  except?: string,
): AsyncGenerator<number> {
  for await (const entries of entriesOf(context, user)) {
    const { sessions } = await readEntries(context, user, entries)
    const ids = sessions.map(({ id }) => id).filter((id) => id !== except)
    yield await endAndForget(context, ids)
  }
}

/**
 * Adds up the sessions that the steps of a call have ended.
 *
 * @throws StoreError If a step fails after sessions have or may have ended: with `mayHaveWritten` and `retrySafe`,
 *   because a repeated call ends the others. Otherwise the error of the step.
 */
export async function totalEnded(steps: AsyncIterable<number>): Promise<number> {
  let total = 0
  try {
    for await (const ended of steps) total += ended
  } catch (cause) {
    if (!(cause instanceof StoreError) || cause.statusCode !== 503) throw cause
    const { code, mayHaveWritten } = cause
    if (total === 0 && !mayHaveWritten) throw cause
    const message = 'some sessions may have ended and others not; repeat the call to end them all'
    throw new StoreError(mayHaveWritten ? code : 'ONETRIP_OUTCOME_UNKNOWN', message, {
      retrySafe: true,
      cause,
    })
  }
  return total
}

/**
 * Ends the sessions of a user beyond the maximum of latest logins. A session ends only after that many later ones were
 * found, and their order never changes, so runs of several processes never end too many.
 */
export class KeepLatest {
  readonly #settings: Settings
  /** The users who have logged in since the last step of their run. */
  readonly #again = new Set<string>()
  readonly #runs = new Map<string, Promise<void>>()

  constructor(settings: Settings) {
    this.#settings = settings
  }

  /** Logins at the same time share one run, so that they do not all end the same sessions. */
  of(user: string): Promise<void> {
    this.#again.add(user)
    const run = this.#runs.get(user) ?? this.#run(user)
    this.#runs.set(user, run)
    return run
  }

  async #run(user: string): Promise<void> {
    try {
      while (this.#again.delete(user)) await this.#endSurplus(user)
    } finally {
      this.#runs.delete(user)
    }
  }

  async #endSurplus(user: string): Promise<void> {
    const { runner, keys, maxSessionsPerUser: max } = this.#settings
    // Entries of logins in progress, and of sessions that other processes have ended and not yet removed: surplus
    // sessions may be behind them.
    let others = 0
    for (let isFull = true; isFull; ) {
      const count = max + others + STEP_SIZE
      const entries = await runner.run(firstEntries(keys, user, count, 'REV'))
      const { sessions, removed } = await readEntries(this.#settings, user, entries)
      const surplus = sessions.slice(max).map(({ id }) => id)
      await endAndForget(this.#settings, surplus)
      isFull = entries.length === count
      others = entries.length - sessions.length - removed
    }
  }
}
