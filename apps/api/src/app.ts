import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { SessionStore } from '@onetrip/session-store'
import { fastifySessions } from '@onetrip/session-store/fastify'
import fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify'
import type { Registry } from 'prom-client'
import type { Authenticator } from './authenticator.ts'
import { defaultLimits, type Limits, serverOptions } from './limits.ts'
import { RequestLog, requestIds } from './logging.ts'
import { connectionsPlugin } from './plugins/connections.ts'
import { answerConnectionError, answerFrameworkError, errorsPlugin } from './plugins/errors.ts'
import { hostPlugin } from './plugins/host.ts'
import { type LoginLimits, loginLimitPlugin } from './plugins/login-limit.ts'
import { methodsPlugin, otherMethodsPlugin } from './plugins/methods.ts'
import { metricsPlugin } from './plugins/metrics.ts'
import { openapiPlugin } from './plugins/openapi.ts'
import { overloadPlugin } from './plugins/overload.ts'
import { readinessPlugin } from './plugins/readiness.ts'
import type { Topology } from './redis-location.ts'
import { requestLogger } from './request-logger.ts'
import { authenticatedRoutes } from './routes/authenticated.ts'
import { demoRoutes } from './routes/demo.ts'
import { healthRoutes } from './routes/health.ts'
import { metricsRoutes } from './routes/metrics.ts'
import { pageRoutes } from './routes/page.ts'
import { publicRoutes } from './routes/public.ts'
import { reportRoutes } from './routes/report.ts'
import { type RiskOptions, riskPlugin } from './shop/risk.ts'
import type { Buy } from './shop/sale.ts'
import type { TrustedProxies } from './trust-proxy.ts'
import { schemaErrorFormatter, validatorCompiler } from './validation.ts'

export interface AppOptions {
  /** Used, not closed. */
  store: SessionStore
  authenticator: Authenticator
  /** Registers routes of the application that need a session: `request.user` is checked in them. */
  routes?: FastifyPluginAsyncTypebox | undefined
  /** Registers routes of the application that need no session. */
  publicRoutes?: FastifyPluginAsyncTypebox | undefined
  /** Where `store` finds Redis, for `/metrics`: `tcp`, `tls` or `unix`. */
  transport: string
  /** And whether that is one server, a cluster, or the master that sentinels name. Default `single`. */
  topology?: Topology
  /** Cookies only over HTTPS, and with the prefix `__Host-`. */
  secureCookie: boolean
  /**
   * Origins, as `https://shop.example`, whose pages may change state by cookie. Default: only the one
   * whose host the request names in `Host`.
   */
  publicOrigins?: readonly string[]
  /** Serve `/openapi.json` and `/docs`. Default true. */
  docs?: boolean
  /** Serve the demo page at `/`, and what it shows. Default true. */
  page?: boolean
  /** Serve facts about the Redis server to everybody, for the demo page. Default true. */
  serverFacts?: boolean
  /** The page that `/report` serves. Default: none. */
  reportFile?: string
  /** Path of the demo service's Unix socket. Default: no race. */
  demoSocket?: string
  logger?: FastifyServerOptions['logger']
  /** Logs a line for each request. Default false. */
  logRequests?: boolean
  /** Default: `defaultLimits`. */
  limits?: Partial<Limits>
  /** How late the event loop may be before requests are refused. Default 0: as late as it likes. */
  maxEventLoopDelayMs?: number
  /** Default: none. */
  loginLimits?: LoginLimits
  /** Whose `X-Forwarded-For` is believed. Default: nobody's. */
  trustProxy?: TrustedProxies | undefined
  /** How the flash sale sells a piece. Default: `buyByScript`. */
  buy?: Buy | undefined
  /** Keeps risk features of users. Default: none, and no `GET /me/risk`. */
  risk?: RiskOptions | undefined
  /** Registers spans for requests. Default: none. */
  traceRequests?: ((app: FastifyInstance) => Promise<void>) | undefined
  /** For `/metrics`: processes of this API, and connections to Redis of each. Default: not reported. */
  settings?: { workers: number; poolSize: number }
  metrics?: {
    /** What this process measures of itself. Default: one of its own. */
    registry?: Registry | undefined
    /** What `/metrics` serves. Default: this process's; a worker serves those of all, merged. */
    gather?: (() => Promise<string>) | undefined
  }
}

const NO_LOGIN_LIMITS: LoginLimits = { perUser: 0, perAddress: 0, windowSeconds: 1 }

/** The application, not yet listening: a test can inject requests. */
export async function buildApp(options: AppOptions): Promise<FastifyInstance> {
  const { store, authenticator, transport, topology = 'single', secureCookie } = options
  const { publicOrigins = [], docs = true, page = true, maxEventLoopDelayMs = 0 } = options
  const { logger = false } = options
  const limits = { ...defaultLimits, ...options.limits }
  const app = fastify({
    logger,
    logController: new RequestLog({ enabled: options.logRequests ?? false }),
    childLoggerFactory: requestLogger,
    genReqId: requestIds(),
    ...serverOptions(limits),
    trustProxy: options.trustProxy ?? false,
    schemaErrorFormatter,
    frameworkErrors: answerFrameworkError,
    clientErrorHandler: answerConnectionError,
    // While it closes, requests on open connections are still answered.
    return503OnClosing: false,
  })
  app.server.maxConnections = limits.connections
  app.setValidatorCompiler(validatorCompiler)
  app.removeContentTypeParser('text/plain') // a page of another origin may send it without asking first
  // Node's own answer to it has no body, and so no code; RFC 9110, 10.1.1, allows either.
  app.server.on('checkExpectation', (...request) => app.server.emit('request', ...request))

  await options.traceRequests?.(app)
  await app.register(errorsPlugin)
  await app.register(readinessPlugin, limits)
  await app.register(connectionsPlugin, limits)
  await app.register(hostPlugin)
  await app.register(methodsPlugin)
  const cookie = { secure: secureCookie }
  await app.register(fastifySessions, { store, cookie, publicOrigins, errorHandler: false })
  await app.register(loginLimitPlugin, options.loginLimits ?? NO_LOGIN_LIMITS)
  await app.register(metricsPlugin, {
    ...{ transport, topology, settings: options.settings, registry: options.metrics?.registry },
  })
  if (docs) await app.register(openapiPlugin, { secureCookie })
  await app.register(healthRoutes)
  await app.register(metricsRoutes, { gather: options.metrics?.gather })
  // Those above are answered however busy the service is.
  await app.register(async (service) => {
    await service.register(overloadPlugin, { maxEventLoopDelayMs })
    if (options.risk) await service.register(riskPlugin, options.risk)
    await service.register(publicRoutes, { authenticator })
    if (options.publicRoutes) await service.register(options.publicRoutes)
    await service.register(authenticatedRoutes, {
      routes: options.routes,
      dataBodyBytes: limits.dataBodyBytes,
      shop: { maySell: (user) => authenticator.maySell?.(user) ?? false, buy: options.buy },
    })
    await service.register(reportRoutes, { file: options.reportFile ?? '' })
    if (page) {
      const { demoSocket = '', serverFacts = true } = options
      await service.register(demoRoutes, {
        ...{ socket: demoSocket, authenticator, serverFacts, topology },
      })
      await service.register(pageRoutes)
    }
  })
  await app.register(otherMethodsPlugin)
  return app
}
