import type { Static, TSchema } from 'typebox'
import { UserCredentials } from './schemas.ts'

/** Proves who somebody is. It belongs to the application that uses the store, not to Onetrip. */
export interface Authenticator<Schema extends TSchema = TSchema> {
  /** Schema of the body of `POST /login`; its `examples` are for the documentation. */
  readonly credentials: Schema
  /** Normalized user name as claimed by the client; the rate-limit key. */
  claimedUser(credentials: Static<Schema>): string
  /** Whether the client asks for the longer lifetime (SESSION_REMEMBERED_SECONDS). Default: it does not. */
  remembers?(credentials: Static<Schema>): boolean
  /**
   * The user's name in the store, or undefined if the credentials are invalid. An `ApiError` becomes the
   * answer; any other error is logged and answered with 500.
   */
  authenticate(credentials: Static<Schema>): Promise<string | undefined>
  /** Whether this user may put items on sale. Default: nobody may. */
  maySell?(user: string): boolean
}

/**
 * The demo's stand-in (`AUTH=trust`): believes every name.
 *
 * @throws Error in production.
 */
export function trustingAuthenticator(environment: string): Authenticator<typeof UserCredentials> {
  if (environment === 'production') {
    throw new Error(
      'AUTH=trust believes every name that logs in, so it does not run with NODE_ENV=production; set AUTH=password and USERS_FILE, or pass an authenticator of your own to serve() (apps/api/README.md)',
    )
  }
  return {
    credentials: UserCredentials,
    claimedUser: ({ user }) => user,
    remembers: ({ remember = false }) => remember,
    authenticate: async ({ user }) => user,
    maySell: () => true,
  }
}
