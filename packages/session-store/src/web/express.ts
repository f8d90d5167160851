import '../node-version.ts'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { SessionStore } from '../store.ts'
import { errorBody, errorHeaders, isAnswerable } from './errors.ts'
import { openWeb, type StoreChoice, type WebOptions } from './options.ts'
import { type ResponseSession, WebSession } from './sessions.ts'

export type { CookieOptions, CookiePlace } from './cookie.ts'
export {
  type CodedError,
  type ErrorBody,
  errorBody,
  errorHeaders,
} from './errors.ts'
export type { StoreChoice, WebOptions } from './options.ts'
export type { LoggedIn, RequestSession, ResponseSession, WebSession } from './sessions.ts'

/** The session of one request, with functions that also set or remove the cookie of the response. */
export type ExpressSession = ResponseSession

declare global {
  namespace Express {
    interface Request {
      /** Not named `session`, so that it works together with express-session or cookie-session. */
      onetrip: ExpressSession
    }
  }
}

type Request = IncomingMessage & { onetrip?: ExpressSession; app?: unknown }
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
      if (isExpress4(request.app)) return next(new Error(EXPRESS_4))
      request.onetrip = new WebSession(web, request, {
        isSent: () => response.headersSent,
        setCookie: (header) => void response.appendHeader('set-cookie', header),
      })
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

const EXPRESS_4 =
  'expressSessions needs Express 5: Express 4 does not pass the error of an async function to the error handler, so a request without a session would end the process'

/** Express 5 has a router from the beginning. */
const isExpress4 = (app: unknown) => typeof Object(app).lazyrouter === 'function'
