import type { FastifyRequest } from 'fastify'
import type { Static, TSchema } from 'typebox'
import { deviceLabel } from './device-label.ts'
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
   * Text for `GET /me/sessions`, stored with the session, such as a `deviceLabel`. At most 200 bytes (UTF-8), no control
   * characters. Default: none.
   */
  label?(request: FastifyRequest): string
  /** Whether visitors may start sessions without a user (`POST /guest`): they need memory, too. Default: no. */
  readonly guests?: boolean
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
    guests: true,
    label: ({ headers }) => deviceLabel(headers['user-agent']),
    authenticate: async ({ user }) => user,
  }
}
