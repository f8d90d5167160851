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

/** The session of one request, with what also sets or removes the cookie of the response. */
export interface ExpressSession extends RequestSession {
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
   * @throws What reading `token` and the store's `logout` throw.
   */
  logout(): Promise<boolean>
  /** Removes the cookie only. */
  clearCookie(): void
}

declare global {
  namespace Express {
    interface Request {
      /** Not `session`, which express-session and cookie-session use: both may run side by side. */
      onetrip: ExpressSession
    }
  }
}

type Request = IncomingMessage & { onetrip?: ExpressSession }
type Next = (error?: unknown) => void

export interface ExpressSessions {
  readonly store: SessionStore
  /** Gives each request its `req.onetrip`. To be used before the routes. */
  middleware(request: Request, response: ServerResponse, next: Next): void
  /**
   * Responds to errors of the store and of `req.onetrip`; passes on all others. To be used after the
   * routes.
   */
  errorHandler(error: unknown, request: Request, response: ServerResponse, next: Next): void
  /** Closes the store, unless it was given. For after the server has closed. */
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
 * Sessions for Express 5: middleware that gives `req.onetrip`, with `login`, `logout` and CSRF protection,
 * and a handler of errors. Resolves once Redis can be used.
 *
 * @throws TypeError for options that cannot be used; what the store's `ready` throws.
 */
export async function expressSessions(options: WebOptions & StoreChoice): Promise<ExpressSessions> {
  const web = await openWeb(options)
  return {
    store: web.store,
    close: web.close,

    middleware(request, response, next) {
      if (request.onetrip) {
        return next(new Error('req.onetrip exists already: expressSessions is used twice'))
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
