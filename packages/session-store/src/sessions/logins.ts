import { checkId, checkWith, type StoreContext } from '../context.ts'
import { idempotent } from '../errors.ts'
import {
  checkBoolean,
  checkLabel,
  checkLimit,
  checkName,
  checkNumber,
  checkObject,
} from '../input.ts'
import { type DataOption, type MaybeData, withDataIf } from '../operations/data.ts'
import {
  checkToken,
  GUEST,
  login,
  recentIds,
  type Session,
  statesOf,
  touchSession,
} from '../operations/sessions.ts'
import { updateToken } from '../operations/views.ts'
import type { LoginOptions } from '../options.ts'
import { loginFrom, oldIdOf } from './take-over.ts'
import { userSessionLists } from './user-sessions.ts'

export interface NewSession {
  /** The credential of the session: keep it secret. */
  token: string
  /** When the token expires, in milliseconds since 1970. The session may end earlier. */
  expiresAt: number
}

export interface RecentSession {
  /** Null for a guest session. */
  user: string | null
  /** Milliseconds since 1970. */
  lastSeenAt: number
}

/** The functions of the store that start, check and end a session. */
export function loginFunctions<Fields extends object>(context: StoreContext) {
  const { runner, keys, tokens, now, maxSessionsPerUser } = context
  const { run } = runner
  const lists = userSessionLists(context)

  return {
    /**
     * Logs a user in with a new token, and adds the session to the user's list (`userSessions`). One round
     * trip; four or five more to end the oldest sessions if the user has more than `maxSessionsPerUser`, and those of
     * concurrent logins of this user. If ending them fails, the login still succeeds, and the next login tries again.
     *
     * With `from`, the session takes over the data and views of a session of a guest or of the same user, and ends that
     * one: two to five round trips instead of one. If ending it fails, the login still succeeds.
     */
    login: async (user: string, options: LoginOptions = {}): Promise<NewSession> => {
      checkName('user', user)
      const old = oldIdOf(tokens, options)
      const { remember = false, label = '' } = options
      checkBoolean('remember', remember)
      checkLabel(label)
      const token = tokens.issue(remember)
      const id = tokens.verify(token)
      const input = { id, user, label }
      const listed =
        old === undefined
          ? await run(login(keys, input, now()))
          : await loginFrom(context, old, input)
      if (listed > maxSessionsPerUser) {
        await lists.keepLatest(user, maxSessionsPerUser, id).catch(() => undefined)
      }
      return { token, expiresAt: tokens.expiresAt(token) }
    },

    /**
     * Starts a session without a user with a new token. The session has views and data, and its `user` is null.
     * `login(user, { from: token })` turns it into a user's session. One round trip.
     */
    async loginGuest(): Promise<NewSession> {
      const token = tokens.issue()
      const id = tokens.verify(token)
      await run(updateToken(keys, { id, user: GUEST }, now()))
      return { token, expiresAt: tokens.expiresAt(token) }
    },

    /**
     * Returns the user of the session, null for a guest session. Writes nothing. One round trip, which also
     * reads the session's data with `{ data: true }`.
     *
     * @throws StoreError `ONETRIP_UNKNOWN_SESSION`.
     */
    async checkToken<Asked extends DataOption>(
      token: string,
      options?: Asked,
    ): Promise<MaybeData<Session, Asked, Fields>> {
      const id = tokens.verify(token)
      if (options?.data) {
        return await checkWith(context, withDataIf(options, checkToken(keys, id), keys, id))
      }
      if (options !== undefined) checkObject('options', options)
      return (await checkId(context, id)) as MaybeData<Session, Asked, Fields>
    },

    /**
     * As `checkToken`, and refreshes the session, unless it was last seen less than `unlessWithinSeconds` (default 0)
     * ago. One round trip. The refresh takes a second one, which the call does not wait for; if it fails, the session
     * keeps its time of last use.
     *
     * @throws StoreError `ONETRIP_UNKNOWN_SESSION`.
     */
    async touch(token: string, unlessWithinSeconds = 0): Promise<Session> {
      const id = tokens.verify(token)
      checkNumber('unlessWithinSeconds', unlessWithinSeconds, { min: 0 })
      const session = await checkId(context, id)
      if (session.lastSeenAt > now() - 1000 * unlessWithinSeconds) return session
      const lastSeenAt = now()
      run(touchSession(keys, id, lastSeenAt)).catch(() => undefined)
      return { ...session, lastSeenAt }
    },

    /**
     * Ends the session and removes its records. A concurrent view does not bring it back (`endSessions` and
     * `recordView` say why). Returns false if there was no session. One round trip; a second one, which the call does
     * not wait for, removes the session from its user's list. If the outcome is unknown, a retry is safe; it returns
     * false if the first call has ended the session.
     */
    logout: idempotent((token: string) => lists.end(tokens.verify(token))),

    /** The most recently seen sessions, at most `limit` (1 to 1,000, default 50), newest first. Two round trips. */
    recentSessions: async (limit: number = 50): Promise<RecentSession[]> => {
      checkLimit(limit)
      const recent = await run(recentIds(keys, limit))
      if (recent.length === 0) return []
      const ids = recent.map(({ id }) => id)
      const states = await run(statesOf(keys, ids))
      return recent.flatMap(({ lastSeenAt }, index) => {
        const state = states[index]
        return state === undefined ? [] : [{ user: state.user, lastSeenAt }]
      })
    },
  }
}
