import type { StoreContext } from '../context.ts'
import { StoreError } from '../errors.ts'
import { checkNumber } from '../input.ts'
import type { NewSession } from '../sessions/logins.ts'
import { issuedAt } from './tokens.ts'

/** The functions of the store that check only a token, not whether its session still exists. No round trip. */
export function tokenFunctions({ tokens, now }: StoreContext) {
  return {
    /** When this token expires, in milliseconds since 1970. The session may end earlier. */
    tokenExpiresAt: (token: string): number => tokens.expiresAt(token),

    /** Whether `tokens.renewAfterSeconds` is set. */
    renewsTokens: tokens.renews,

    /**
     * Returns a token of the same session that expires later. Returns the same token as long as it is not older than
     * `tokens.renewAfterSeconds`, and if it already lives until `tokens.maxLifetimeSeconds`. Call it after a function
     * that checks the session.
     */
    renewToken(token: string): NewSession {
      const renewed = tokens.renew(token)
      return { token: renewed, expiresAt: tokens.expiresAt(renewed) }
    },

    /**
     * Requires that the session was started (`login`, not a renewal) within the last `seconds`, before a sensitive
     * action: otherwise ask for the password and call `login(user, { from: token })`. A new guest session passes, so
     * check the user as well.
     *
     * @throws StoreError `ONETRIP_STALE_LOGIN`.
     */
    requireFresh(token: string, seconds: number): void {
      checkNumber('seconds', seconds, { min: 0 })
      const loggedInAt = issuedAt(tokens.verify(token)) ?? 0
      if (now() - loggedInAt > 1000 * seconds) throw new StoreError('ONETRIP_STALE_LOGIN')
    },
  }
}
