import type { StoreContext } from '../context.ts'
import type { NewSession } from '../sessions/logins.ts'

/** The functions of the store that check only a token, not whether its session still exists. No round trip. */
export function tokenFunctions({ tokens }: StoreContext) {
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
  }
}
