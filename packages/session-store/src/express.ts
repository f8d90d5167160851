import type { IncomingMessage, ServerResponse } from 'node:http'
import type { LoginOptions } from './store-options.ts'
import type { NewSession, SessionStore } from './store-types.ts'
import { errorBody, errorHeaders, isSessionError } from './web/errors.ts'
import {
  type LoggedIn,
  openWeb,
  type RequestSession,
  type StoreChoice,
  type Web,
  type WebOptions,
  WebSession,
} from './web/sessions.ts'

export type { CookieOptions } from './web/cookie.ts'
export {
  type CodedError,
  type ErrorBody,
  errorBody,
  errorHeaders,
  SessionRequestError,
  type SessionRequestErrorCode,
} from './web/errors.ts'
export type { LoggedIn, RequestSession, StoreChoice, WebOptions } from './web/sessions.ts'

/** The session of one request, with functions that also set or remove the cookie of the response. */
export interface ExpressSession extends RequestSession {
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
   * @throws The errors of reading `token` and of the store's `logout`.
   */
  logout(): Promise<boolean>
  /** Removes the cookie. The session continues. */
  clearCookie(): void
}

declare global {
  namespace Express {
    interface Request {
      /** Not named `session`, so that it works beside express-session or cookie-session. */
      onetrip: ExpressSession
    }
  }
}

type Request = IncomingMessage & { onetrip?: ExpressSession }
type Next = (error?: unknown) => void

export interface ExpressSessions {
  readonly store: SessionStore
  /** Adds `req.onetrip` to each request. Use it before the routes. */
  middleware(request: Request, response: ServerResponse, next: Next): void
  /** Responds to errors of the store and of `req.onetrip`; passes on all others. Use it after the routes. */
  errorHandler(error: unknown, request: Request, response: ServerResponse, next: Next): void
  /** Closes the store, unless you passed your own. Call it after the server has closed. */
  close(): Promise<void>
}

class ResponseSession extends WebSession implements ExpressSession {
  readonly #setCookie: (header: string) => void

  constructor(web: Web, request: Request, response: ServerResponse) {
    super(web, request)
    this.#setCookie = (header) => void response.appendHeader('set-cookie', header)
  }

  override login(user: string, options?: LoginOptions): Promise<LoggedIn> {
    return super.login(user, options, this.#setCookie)
  }

  override loginGuest(): Promise<NewSession> {
    return super.loginGuest(this.#setCookie)
  }

  override logout(): Promise<boolean> {
    return super.logout(this.#setCookie)
  }

  override clearCookie(): void {
    super.clearCookie(this.#setCookie)
  }
}

/**
 * Sessions for Express 5: middleware that adds `req.onetrip`, with `login`, `logout` and CSRF protection, and
 * an error handler. Resolves once Redis is ready.
 *
 * @throws TypeError for unusable options; the errors of the store's `ready`.
 */
export async function expressSessions(options: WebOptions & StoreChoice): Promise<ExpressSessions> {
  const web = await openWeb(options)
  return {
    store: web.store,
    close: web.close,

    middleware(request, response, next) {
      if (request.onetrip) {
        return next(new Error('req.onetrip already exists: expressSessions is used twice'))
      }
      request.onetrip = new ResponseSession(web, request, response)
      next()
    },

    errorHandler(error, _request, response, next) {
      if (!isSessionError(error) || response.headersSent) return next(error)
      const body = Buffer.from(JSON.stringify(errorBody(error)))
      response.writeHead(error.statusCode, {
        ...errorHeaders(error),
        'content-type': 'application/json; charset=utf-8',
        'content-length': body.length,
      })
      response.end(body)
    },
  }
}
