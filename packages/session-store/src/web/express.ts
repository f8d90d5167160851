import '../node-version.ts'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { LoginOptions } from '../options.ts'
import type { NewSession, SessionStore } from '../store.ts'
import { errorBody, errorHeaders, isAnswerable } from './errors.ts'
import { openWeb, type StoreChoice, type Web, type WebOptions } from './options.ts'
import { type LoggedIn, type RequestSession, type WebResponse, WebSession } from './sessions.ts'

export type { CookieOptions, CookiePlace } from './cookie.ts'
export {
  type CodedError,
  type ErrorBody,
  errorBody,
  errorHeaders,
} from './errors.ts'
export type { StoreChoice, WebOptions } from './options.ts'
export type { LoggedIn, RequestSession } from './sessions.ts'

/** The session of one request, with functions that also set or remove the cookie of the response. */
export interface ExpressSession extends RequestSession {
  /**
   * Starts a session for an authenticated user and sets the cookie to its new token. If the request has a
   * session of a guest or of the same user, by cookie or bearer token, the new session takes over its views and data,
   * and the old one ends. Also ends the session of the request's cookie if it is another user's.
   *
   * @throws StoreError `ONETRIP_CROSS_SITE` if a page of another origin sent the request; the
   *   errors of the store's `login`.
   */
  login(user: string, options?: LoginOptions): Promise<LoggedIn>
  /**
   * Starts a session without a user and sets the cookie. A later login takes over its views and data. Ends
   * the session of the request's cookie, and takes over nothing from it.
   *
   * @throws As `login`.
   */
  loginGuest(): Promise<NewSession>
  /**
   * Ends the session of the request and removes its cookie, if it has one. Returns false if there was no
   * session: the request has no token, or one that is invalid or expired, or the session has ended.
   *
   * @throws StoreError `ONETRIP_CROSS_SITE`, unless the token is a bearer token; if Redis does not answer, the
   *   errors of the store's `logout`. The cookie then stays, so that the client can retry.
   */
  logout(): Promise<boolean>
  /** Removes the cookie. The session continues. */
  clearCookie(): void
}

declare global {
  namespace Express {
    interface Request {
      /** Not named `session`, so that it works together with express-session or cookie-session. */
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
  /**
   * Responds to errors of the store and of `req.onetrip`. Passes on all others, and `ONETRIP_WRONG_TYPE`, which is
   * a mistake of the application. Use it after the routes.
   */
  errorHandler(error: unknown, request: Request, response: ServerResponse, next: Next): void
  /** Closes the store, unless you passed your own. Call it after the server has closed. */
  close(): Promise<void>
}

class ResponseSession extends WebSession implements ExpressSession {
  readonly #response: WebResponse

  constructor(web: Web, request: Request, response: ServerResponse) {
    super(web, request)
    this.#response = {
      get sent() {
        return response.headersSent
      },
      setCookie: (header) => void response.appendHeader('set-cookie', header),
    }
    if (web.store.renewsTokens) this.renewOn(this.#response)
  }

  override login(user: string, options?: LoginOptions): Promise<LoggedIn> {
    return super.login(user, options, this.#response)
  }

  override loginGuest(): Promise<NewSession> {
    return super.loginGuest(this.#response)
  }

  override logout(): Promise<boolean> {
    return super.logout(this.#response)
  }

  override clearCookie(): void {
    super.clearCookie(this.#response)
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
      if (!isAnswerable(error) || response.headersSent) return next(error)
      const body = Buffer.from(JSON.stringify(errorBody(error)))
      const { 'set-cookie': cookies = [], ...headers } = errorHeaders(error)
      // Adds to the cookies of the application; writeHead would replace them.
      for (const cookie of [cookies].flat()) response.appendHeader('set-cookie', cookie)
      response.writeHead(error.statusCode, {
        ...headers,
        'content-type': 'application/json; charset=utf-8',
        'content-length': body.length,
      })
      response.end(body)
    },
  }
}
