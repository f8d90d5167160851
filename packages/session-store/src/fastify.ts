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
     * Begins a session for a user whose password or the like has been checked: on a new token, which is set
     * as the cookie. Takes over the views and data of the request's session if it is a guest's, by cookie or
     * bearer token. Ends the session of the request's cookie; a user's session of a bearer token goes on.
     *
     * @throws SessionRequestError `ONETRIP_CROSS_SITE` when a page of another origin sent the request; what
     *   the store's `login` throws.
     */
    login(user: string, options?: LoginOptions): Promise<LoggedIn>
    /**
     * Begins a session without a user, which is set as the cookie. A later login takes over its views and
     * data.
     *
     * @throws As `login`.
     */
    loginGuest(): Promise<NewSession>
    /**
     * Ends the session of the request and removes its cookie. Returns false when there was no session.
     *
     * @throws What reading `request.session.token` and the store's `logout` throw.
     */
    logout(): Promise<boolean>
    /** Removes the cookie only. */
    clearSessionCookie(): void
  }
}

const kSession = Symbol('onetrip session')

type RequestWithSession = FastifyRequest & { [kSession]: WebSession | null }

export type FastifySessionsOptions = WebOptions &
  StoreChoice & {
    /**
     * Whether errors of the store and of `request.session` get responses: status, a body with `code`, and
     * from 500 on `mayHaveWritten` and `retrySafe`, and headers. Default true; false for an application
     * that does so itself, as with `errorBody` and `errorHeaders`.
     */
    errorHandler?: boolean
  }

const plugin: FastifyPluginAsync<FastifySessionsOptions> = async (app, options) => {
  const { errorHandler = true, ...webOptions } = options
  if (app.hasDecorator('store') || app.hasRequestDecorator('session')) {
    throw new Error(
      'app.store or request.session exists already: fastifySessions is registered twice, or beside another session plugin such as @fastify/session',
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
 * Sessions for Fastify: `request.session`, `reply.login` and `reply.logout`, CSRF protection, responses to
 * errors, and `app.store`. Waits until Redis can be used, and closes the store with the application if it
 * created it.
 *
 * @throws TypeError for options that cannot be used; Error when registered twice.
 */
export const fastifySessions = fp(plugin, { name: '@onetrip/session-store', fastify: '5.x' })
