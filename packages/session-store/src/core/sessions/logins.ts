import { checkId, checkWith, multiStep, type StoreContext } from '../context.ts'
import { type DataOption, type MaybeData, withDataIf } from '../data/data.ts'
import { idempotent, requireSession } from '../errors.ts'
import { checkBoolean, checkLimit, checkName, checkNumber } from '../input.ts'
import {
  checkToken,
  GUEST,
  recentIds,
  type Session,
  touchSession,
  updateToken,
  usersOf,
} from '../operations.ts'
import type { LoginOptions } from '../store-options.ts'
import type { NewSession, RecentSession } from '../store-types.ts'
import { guestOf, loginFromGuest } from './guests.ts'
import { userSessionLists } from './user-session-lists.ts'
import { login } from './user-sessions.ts'

/** The functions of the store that start, check and end a session. */
export function loginFunctions(context: StoreContext) {
  const { runner, keys, tokens, now, maxSessionsPerUser } = context
  const { run } = runner
  const lists = userSessionLists(context)
  const steps = multiStep(context)

  return {
    login: steps(async (user: string, options: LoginOptions = {}): Promise<NewSession> => {
      checkName('user', user)
      const guest = guestOf(tokens, options)
      const { remember = false } = options
      checkBoolean('remember', remember)
      const token = tokens.issue(remember)
      const id = tokens.verify(token)
      const listed =
        guest === undefined
          ? await run(login(keys, { id, user }, now()))
          : await loginFromGuest(context, { guest, id, user })
      if (listed > maxSessionsPerUser) {
        await lists.endOldest(user, listed - maxSessionsPerUser, id).catch(() => undefined)
      }
      return { token, expiresAt: tokens.expiresAt(id) }
    }),

    async loginGuest(): Promise<NewSession> {
      const token = tokens.issue()
      const id = tokens.verify(token)
      await run(updateToken(keys, { id, user: GUEST }, now()))
      return { token, expiresAt: tokens.expiresAt(id) }
    },

    tokenExpiresAt: (token: string) => tokens.expiresAt(tokens.verify(token)),

    async checkToken<Asked extends DataOption>(
      token: string,
      options?: Asked,
    ): Promise<MaybeData<Session, Asked>> {
      const id = tokens.verify(token)
      return await checkWith(context, withDataIf(options, checkToken(keys, id), keys, id))
    },

    touch: steps(
      idempotent(async (token: string, unlessWithinSeconds: number = 0): Promise<Session> => {
        const id = tokens.verify(token)
        checkNumber('unlessWithinSeconds', unlessWithinSeconds, { min: 0 })
        const session = await checkId(context, id)
        if (session.lastSeenAt > now() - 1000 * unlessWithinSeconds) return session
        return requireSession(await run(touchSession(keys, id, now())))
      }),
    ),

    logout: steps(idempotent((token: string) => lists.end(tokens.verify(token)))),

    recentSessions: steps(async (limit: number = 50): Promise<RecentSession[]> => {
      checkLimit(limit)
      const recent = await run(recentIds(keys, limit))
      if (recent.length === 0) return []
      const ids = recent.map(({ id }) => id)
      const users = await run(usersOf(keys, ids))
      return recent.flatMap(({ lastSeenAt }, index) => {
        const user = users[index]
        return user === undefined ? [] : [{ user, lastSeenAt }]
      })
    }),
  }
}
