import '../node-version.ts'
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { checkOptionNames, checkOptions, type NamesOf } from '../input.ts'
import type { LoginOptions } from '../options.ts'
import type { NewSession } from '../store.ts'
import { errorBody, errorHeaders, isAnswerable } from './errors.ts'
import { openWeb, type StoreChoice, type WebOptions } from './options.ts'
import { type LoggedIn, type WebResponse, WebSession } from './sessions.ts'

export { type CookieOptions, type CookiePlace, cookieName } from './cookie.ts'
export {
  type CodedError,
  type ErrorBody,
  errorBody,
  errorHeaders,
} from './errors.ts'
export type { StoreChoice, WebOptions } from './options.ts'
export type { LoggedIn, RequestSession } from './sessions.ts'

declare module 'fastify' {
  interface FastifyReply {
    /**
     * Starts a session for an authenticated user and sets the cookie to its new token. If the request has a
     * session of a guest or of the same user, by cookie or bearer token, the new session takes over its views and
     * data, and the old one ends. Also ends the session of the request's cookie if it is another user's.
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
    clearSessionCookie(): void
  }
}

const kSession = Symbol('onetrip session')

type RequestWithSession = FastifyRequest & { [kSession]: WebSession | null }

export type FastifySessionsOptions = WebOptions &
  StoreChoice & {
    /**
     * Responds to errors of the store and of `request.session` with their status, `errorBody` and
     * `errorHeaders`. Passes on `ONETRIP_WRONG_TYPE`, which is a mistake of the application. Set false to
     * respond to them yourself. Default true.
     */
    errorHandler?: boolean
    /**
     * Names of the decorators, if another plugin has `request.session` or `app.store`. In TypeScript, import
     * `@onetrip/session-store/fastify-named` and declare the types of your names.
     */
    decorators?: DecoratorNames
  }

export interface DecoratorNames {
  /** The session of a request. Default `session`: `request.session`. */
  session?: string | undefined
  /** The store. Default `store`: `app.store`. */
  store?: string | undefined
}

const decoratorNames: NamesOf<DecoratorNames> = { session: true, store: true }

const plugin: FastifyPluginAsync<FastifySessionsOptions> = async (app, options) => {
  const { errorHandler = true, decorators = {}, ...webOptions } = options
  if (typeof errorHandler !== 'boolean') throw new TypeError('errorHandler must be true or false')
  const { session, store } = checkedNames(decorators)
  checkFree(app, { session, store })
  const web = await openWeb(webOptions)
  app.addHook('onClose', () => web.close())
  app.decorate(store, web.store)

  app.decorateRequest(kSession, null)
  const sessionOf = (request: FastifyRequest) => {
    const owner = request as RequestWithSession
    owner[kSession] ??= new WebSession(web, request)
    return owner[kSession]
  }
  app.decorateRequest<WebSession>(session, {
    getter() {
      return sessionOf(this as FastifyRequest)
    },
  })
  const responseOf = (reply: FastifyReply): WebResponse => ({
    get sent() {
      return reply.sent || reply.raw.headersSent
    },
    setCookie: (header) => void reply.header('set-cookie', header),
  })
  if (web.store.renewsTokens) {
    app.addHook('onRequest', (request, reply, done) => {
      sessionOf(request).renewOn(responseOf(reply))
      done()
    })
  }
  app.decorateReply('login', function (user, options) {
    return sessionOf(this.request).login(user, options, responseOf(this))
  })
  app.decorateReply('loginGuest', function () {
    return sessionOf(this.request).loginGuest(responseOf(this))
  })
  app.decorateReply('logout', function () {
    return sessionOf(this.request).logout(responseOf(this))
  })
  app.decorateReply('clearSessionCookie', function () {
    sessionOf(this.request).clearCookie(responseOf(this))
  })

  if (!errorHandler) return
  app.setErrorHandler((error, request, reply) => {
    if (!isAnswerable(error)) return reply.send(error)
    const { code, message, statusCode, mayHaveWritten } = error
    if (statusCode >= 500) request.log.warn({ code, mayHaveWritten }, message)
    return reply.code(statusCode).headers(errorHeaders(error)).send(errorBody(error))
  })
}

interface Names {
  session: string
  store: string
}

function checkedNames(decorators: DecoratorNames): Names {
  checkOptions('decorators', decorators)
  checkOptionNames('decorators', decorators, decoratorNames)
  const names = { session: decorators.session ?? 'session', store: decorators.store ?? 'store' }
  for (const [option, name] of Object.entries(names)) {
    if (typeof name === 'string' && name !== '') continue
    throw new TypeError(`decorators.${option} must be a name`)
  }
  return names
}

/** @throws Error naming the option that avoids the conflict. */
function checkFree(app: FastifyInstance, { session, store }: Names): void {
  if (app.hasReplyDecorator('login')) {
    throw new Error('reply.login already exists: fastifySessions is registered twice')
  }
  if (app.hasDecorator(store)) {
    throw new Error(`app.${store} already exists: choose another name with decorators.store`)
  }
  if (app.hasRequestDecorator(session)) {
    throw new Error(
      `request.${session} already exists, such as that of @fastify/session: choose another name with decorators.session`,
    )
  }
}

/**
 * Sessions for Fastify: `request.session`, `reply.login` and `reply.logout`, CSRF protection, error
 * responses, and `app.store`. Waits until Redis is ready. Closes the store with the application if it created
 * the store.
 *
 * @throws TypeError for unusable options; Error if registered twice, or if the name of a decorator is taken.
 */
export const fastifySessions = fp(plugin, { name: '@onetrip/session-store', fastify: '5.x' })
