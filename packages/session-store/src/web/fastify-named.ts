import '../node-version.ts'
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { checkedOptions } from '../input.ts'
import { errorBody, errorHeaders, isAnswerable } from './errors.ts'
import { openWeb, type StoreChoice, type WebOptions } from './options.ts'
import { type Logins, type ResponseSession, WebSession } from './sessions.ts'

export { type CookieOptions, type CookiePlace, cookieName } from './cookie.ts'
export {
  type CodedError,
  type ErrorBody,
  errorBody,
  errorHeaders,
} from './errors.ts'
export type { StoreChoice, WebOptions } from './options.ts'
export type { LoggedIn, RequestSession, ResponseSession, WebSession } from './sessions.ts'

declare module 'fastify' {
  interface FastifyReply extends Omit<Pick<ResponseSession, Logins>, 'clearCookie'> {
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
  const responding = (reply: FastifyReply) =>
    sessionOf(reply.request).respondOn({
      isSent: () => reply.sent || reply.raw.headersSent,
      setCookie: (header) => void reply.header('set-cookie', header),
    })
  app.decorateRequest<WebSession>(session, {
    getter() {
      return sessionOf(this as FastifyRequest)
    },
  })
  if (web.store.renewsTokens) {
    app.addHook('onRequest', (_request, reply, done) => {
      responding(reply)
      done()
    })
  }
  app.decorateReply('login', function (user, options) {
    return responding(this).login(user, options)
  })
  app.decorateReply('loginGuest', function () {
    return responding(this).loginGuest()
  })
  app.decorateReply('logout', function () {
    return responding(this).logout()
  })
  app.decorateReply('clearSessionCookie', function () {
    responding(this).clearCookie()
  })

  if (!errorHandler) return
  app.setErrorHandler((error, request, reply) => {
    if (!isAnswerable(error)) return reply.send(error)
    const { code, message, statusCode, mayHaveWritten } = error
    if (statusCode >= 500) request.log.warn({ code, mayHaveWritten }, message)
    return reply.code(statusCode).headers(errorHeaders(error)).send(errorBody(error))
  })
}

function checkedNames(decorators: DecoratorNames) {
  const names = { session: 'session', store: 'store' }
  const kinds = { session: 'string', store: 'string' } as const
  return checkedOptions('decorators', decorators, names, kinds)
}

/** @throws Error naming the option that avoids the conflict. */
function checkFree(
  app: FastifyInstance,
  { session, store }: ReturnType<typeof checkedNames>,
): void {
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
