import type { StoreContext } from '../context.ts'
import { decodeReadable, readStored } from '../data/data.ts'
import { checkName, checkObject, wrongType } from '../input.ts'
import type { Keys } from '../keys.ts'
import { type Command, memberScores, type Operation, type Reply, timeOf } from '../operation.ts'
import { forgetSessions } from './list-operations.ts'
import { endSessions, tombstoneSeconds } from './session-operations.ts'
import { totalEnded, userSessionLists } from './user-session-lists.ts'
import { batches, LOGINS_PER_STEP, SESSIONS_PER_STEP, walk } from './walk.ts'

/** Everything that the store holds about a user. Times in milliseconds since 1970. */
export interface UserExport {
  user: string
  sessions: ExportedSession[]
}

export interface ExportedSession {
  id: string
  /** Null for a session that was started with `updateToken`. */
  loggedInAt: number | null
  /** Absent if the login had none. */
  label?: string
  /** Null if unknown. */
  lastSeenAt: number | null
  /** The newest 25 items, newest first. */
  viewed: { item: string; viewedAt: number }[]
  /** Session data: field → value. */
  data: Record<string, unknown>
  /** Field → text of fields that are not JSON because another program wrote them. Absent if there are none. */
  unreadable?: Record<string, string>
}

export interface WalkOptions {
  /** Called after each step with the number of sessions, of all users, examined so far. */
  onProgress?: (progress: { looked: number }) => void
  /** Stops the walk; the call then rejects with the signal's reason. */
  signal?: AbortSignal
}

/**
 * All sessions of a user. Walks all logins, because sessions that were started with `updateToken` are not in the
 * user's list. May miss a session that starts meanwhile.
 *
 * @returns Session ids in groups of at most 20. An id may occur twice.
 */
async function* sessionsOf(
  { runner, keys }: StoreContext,
  user: string,
  { onProgress, signal }: WalkOptions,
): AsyncGenerator<string[]> {
  let looked = 0
  for (const { login } of keys.parts()) {
    signal?.throwIfAborted()
    for await (const entries of walk(runner, 'HSCAN', login, { count: LOGINS_PER_STEP })) {
      const ids = entries.filter(([, owner]) => owner === user).map(([id]) => id)
      yield* batches(ids, SESSIONS_PER_STEP)
      looked += entries.length
      onProgress?.({ looked })
      signal?.throwIfAborted()
    }
  }
}

const COMMANDS_PER_SESSION = 5

/**
 * Reads these sessions; skips sessions that have ended or belong to another user. Keys: sessions of the user,
 * recent, viewed, data, login.
 */
function contentsOf(
  keys: Keys,
  user: string,
  ids: readonly string[],
): Operation<ExportedSession[]> {
  return {
    commands: ids.flatMap((id): Command[] => [
      ['ZSCORE', keys.sessions(user), id],
      ['ZSCORE', keys.recent(id), id],
      ['ZREVRANGE', keys.viewed(id), 0, -1, 'WITHSCORES'],
      ['HGETALL', keys.data(id)],
      ['HGET', keys.login(id), id],
    ]),
    readOnly: true,
    read: (replies) =>
      ids.flatMap((id, index) => {
        const own = replies.slice(COMMANDS_PER_SESSION * index)
        const [loggedIn, lastSeen, viewed, data, owner] = own
        if (owner !== user) return []
        const stored = readStored(data)
        const {
          data: { fields },
          unreadable,
        } = decodeReadable(stored)
        return {
          id,
          loggedInAt: timeOrNull(loggedIn),
          ...(stored.label !== undefined && { label: stored.label }),
          lastSeenAt: timeOrNull(lastSeen),
          viewed: memberScores(viewed).map(([item, time]) => ({ item, viewedAt: timeOf(time) })),
          data: fields,
          ...(Object.keys(unreadable).length > 0 && { unreadable }),
        }
      }),
  }
}

const timeOrNull = (score: Reply | undefined): number | null =>
  score === null || score === undefined ? null : timeOf(score)

/** The functions of the store for all records of a user. */
export function userRecords(context: StoreContext) {
  const { runner, keys, checks, idleSeconds } = context
  const lists = userSessionLists(context)

  async function* erase(user: string, options: WalkOptions): AsyncGenerator<number> {
    yield* lists.endAll(user)
    for await (const ids of sessionsOf(context, user, options)) {
      const users = await runner.run(endSessions(keys, ids, tombstoneSeconds(idleSeconds)))
      for (const id of ids) checks.forget(id)
      yield users.filter((owner) => owner !== undefined).length
      await runner.run(forgetSessions(keys, user, ids))
    }
  }

  return {
    /**
     * Returns everything that the store holds about a user: sessions with views and data, including those that
     * were started with the operation `updateToken`. Slow: reads all sessions of all users, about 1,000 per round
     * trip. May miss a session that starts meanwhile.
     */
    exportUser: async (user: string, options: WalkOptions = {}): Promise<UserExport> => {
      checkName('user', user)
      checkWalk(options)
      const sessions = new Map<string, ExportedSession>()
      for await (const ids of sessionsOf(context, user, options)) {
        const found = await runner.run(contentsOf(keys, user, ids))
        for (const session of found) sessions.set(session.id, session)
      }
      return { user, sessions: [...sessions.values()] }
    },

    /**
     * Ends all sessions of a user and removes everything that the store holds about them: first the sessions
     * that were started with `login`, then all others, found as in `exportUser`. Make sure first that the
     * user cannot log in; after a failure, call it again. Returns the number of sessions ended.
     */
    eraseUser: async (user: string, options: WalkOptions = {}): Promise<number> => {
      checkName('user', user)
      checkWalk(options)
      return await totalEnded(erase(user, options))
    },
  }
}

/** @throws StoreError `ONETRIP_WRONG_TYPE`, naming the option. */
function checkWalk(options: WalkOptions): void {
  checkObject('options', options)
  const { onProgress, signal } = options
  if (onProgress !== undefined && typeof onProgress !== 'function') {
    throw wrongType('onProgress must be a function')
  }
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw wrongType('signal must be an AbortSignal')
  }
}
