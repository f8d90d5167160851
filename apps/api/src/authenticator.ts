import type { TSchema } from 'typebox'
import { UserCredentials } from './schemas.ts'

/** Proves who somebody is. It belongs to the application that uses the store, not to Onetrip. */
export interface Authenticator {
  /** Schema of the body of `POST /login`; with `examples`, for the documentation. */
  readonly credentials: TSchema
  /** Whom they are for, proven or not, in the one spelling by which attempts are counted. */
  claimedUser(credentials: unknown): string
  /** The user that these credentials prove, or undefined. */
  authenticate(credentials: unknown): Promise<string | undefined>
}

/**
 * The demo's stand-in: believes every name.
 *
 * @throws Error in production.
 */
export function trustingAuthenticator(environment: string): Authenticator {
  if (environment === 'production') {
    throw new Error(
      'the demo believes every name that logs in, so it does not run with NODE_ENV=production: build the app with an authenticator of your own (apps/api/src/authenticator.ts)',
    )
  }
  return {
    credentials: UserCredentials,
    claimedUser: (credentials) => (credentials as { user: string }).user,
    authenticate: async (credentials) => (credentials as { user: string }).user,
  }
}
