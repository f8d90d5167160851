import type { Static, TSchema } from 'typebox'
import { UserCredentials } from './schemas.ts'

/** Checks credentials at login. Implemented by the application. */
export interface Authenticator<Schema extends TSchema = TSchema> {
  /** Schema of the body of `POST /login`. Its `examples` appear in the OpenAPI document. */
  readonly credentials: Schema
  /** Normalized user name as claimed by the client; the rate-limit key. */
  claimedUser(credentials: Static<Schema>): string
  /** Whether the session gets the longer lifetime (SESSION_REMEMBERED_SECONDS). Default: no. */
  remembers?(credentials: Static<Schema>): boolean
  /**
   * Returns the user's name in the store, or undefined if the credentials are invalid (401). A thrown
   * `ApiError` becomes the response; any other error is logged and answered with 500.
   */
  authenticate(credentials: Static<Schema>): Promise<string | undefined>
}

/**
 * For demos: accepts every user name without a password.
 *
 * @throws Error in production.
 */
export function trustingAuthenticator(environment: string): Authenticator<typeof UserCredentials> {
  if (environment === 'production') {
    throw new Error(
      'NODE_ENV=production needs an authenticator: without one, every user name is accepted without a password; pass yours to serve() (apps/api/README.md)',
    )
  }
  return {
    credentials: UserCredentials,
    claimedUser: ({ user }) => user,
    remembers: ({ remember = false }) => remember,
    authenticate: async ({ user }) => user,
  }
}
