import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { LoginOptions } from './store-options.ts'
import type { NewSession, SessionStore } from './store-types.ts'
import { errorBody, errorHeaders, isSessionError } from './web/errors.ts'
import {
  type LoggedIn,
  openWeb,
  type RequestSession,
  type StoreChoice,
  type WebOptions,
  WebSession,
} from './web/sessions.ts'

export { type CookieOptions, cookieName } from './web/cookie.ts'
export {
  type CodedError,
  type ErrorBody,
  errorBody,
  errorHeaders,
  SessionRequestError,
  type SessionRequestErrorCode,
} from './web/errors.ts'
export type { LoggedIn, RequestSession, StoreChoice, WebOptions } from './web/sessions.ts'

declare module 'fastify' {
  interface FastifyInstance {
    store: SessionStore
  }
  interface FastifyRequest {
    session: RequestSession
  }
  interface FastifyReply {
    /**
     * Starts a session for an authenticated user and sets the cookie to its new token. If the request has a
     * guest session, by cookie or bearer token, the new session takes over its views and data. Ends the
     * session of the request's cookie, but not a user's session of a bearer token.
     *
     * @throws SessionRequestError `ONETRIP_CROSS_SITE` if a page of another origin sent the request; the
     *   errors of the store's `login`.
     */
    login(user: string, options?: LoginOptions): Promise<LoggedIn>
    /**
     * Starts a session without a user and sets the cookie. A later login takes over its views and data.
     *
     * @throws As `login`.
     */
    loginGuest(): Promise<NewSession>
    /**
     * Ends the session of the request and removes its cookie. Returns false if there was no session.
     *
     * @throws The errors of reading `request.session.token` and of the store's `logout`.
     */
    logout(): Promise<boolean>
    /** Removes the cookie. The session continues. */
    clearSessionCookie(): void
  }
}

const kSession = Symbol('onetrip session')

type RequestWithSession = FastifyRequest & { [kSession]: WebSession | null }

export type FastifySessionsOptions = WebOptions &
  StoreChoice & {
    /**
     * Responds to errors of the store and of `request.session` with their status, `errorBody` and
     * `errorHeaders`. Set false to respond to them yourself. Default true.
     */
    errorHandler?: boolean
  }

const plugin: FastifyPluginAsync<FastifySessionsOptions> = async (app, options) => {
  const { errorHandler = true, ...webOptions } = options
  if (app.hasDecorator('store') || app.hasRequestDecorator('session')) {
    throw new Error(
      'app.store or request.session already exists: fastifySessions is registered twice, or together with another session plugin such as @fastify/session',
    )
  }
  const web = await openWeb(webOptions)
  app.addHook('onClose', () => web.close())
  app.decorate('store', web.store)

  app.decorateRequest(kSession, null)
  app.decorateRequest('session', {
    getter() {
      const request = this as RequestWithSession
      request[kSession] ??= new WebSession(web, request)
      return request[kSession]
    },
  })
  const sessionOf = (reply: FastifyReply) => reply.request.session as WebSession
  const setCookieOf = (reply: FastifyReply) => (cookie: string) =>
    void reply.header('set-cookie', cookie)
  app.decorateReply('login', function (user, options) {
    return sessionOf(this).login(user, options, setCookieOf(this))
  })
  app.decorateReply('loginGuest', function () {
    return sessionOf(this).loginGuest(setCookieOf(this))
  })
  app.decorateReply('logout', function () {
    return sessionOf(this).logout(setCookieOf(this))
  })
  app.decorateReply('clearSessionCookie', function () {
    sessionOf(this).clearCookie(setCookieOf(this))
  })

  if (!errorHandler) return
  app.setErrorHandler((error, request, reply) => {
    if (!isSessionError(error)) return reply.send(error)
    const { code, message, statusCode, mayHaveWritten } = error
    if (statusCode >= 500) request.log.warn({ code, mayHaveWritten }, message)
    return reply.code(statusCode).headers(errorHeaders(error)).send(errorBody(error))
  })
}

/**
 * Sessions for Fastify: `request.session`, `reply.login` and `reply.logout`, CSRF protection, error
 * responses, and `app.store`. Waits until Redis is ready. Closes the store with the application if it created
 * the store.
 *
 * @throws TypeError for unusable options; Error if registered twice.
 */
export const fastifySessions = fp(plugin, { name: '@onetrip/session-store', fastify: '5.x' })
