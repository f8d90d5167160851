import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { SessionStore } from '@onetrip/session-store'
import { fastifySessions } from '@onetrip/session-store/fastify'
import fastify, {
  type FastifyInstance,
  type FastifyPluginAsync,
  type FastifyServerOptions,
} from 'fastify'
import fp from 'fastify-plugin'
import type { Authenticator } from './authenticator.ts'
import type { ErrorKind } from './errors.ts'
import { defaultLimits, type Limits, serverOptions } from './limits.ts'
import { RequestLog, requestIds } from './logging.ts'
import { connectionsPlugin } from './plugins/connections.ts'
import { answerConnectionError, answerFrameworkError, errorsPlugin } from './plugins/errors.ts'
import { type LoginLimits, loginLimitPlugin } from './plugins/login-limit.ts'
import { metricsPlugin } from './plugins/metrics.ts'
import { openapiPlugin } from './plugins/openapi.ts'
import { overloadPlugin } from './plugins/overload.ts'
import { readinessPlugin } from './plugins/readiness.ts'
import type { Topology } from './redis-location.ts'
import { authenticatedRoutes } from './routes/authenticated.ts'
import { healthRoutes } from './routes/health.ts'
import { metricsRoutes } from './routes/metrics.ts'
import { publicRoutes } from './routes/public.ts'
import type { TrustedProxies } from './trust-proxy.ts'
import { schemaErrorFormatter, validatorCompiler } from './validation.ts'

export interface AppOptions {
  /** The caller closes it. */
  store: SessionStore
  authenticator: Authenticator
  /**
   * Registers the application's routes that need a session. `request.user` is the user of the checked
   * session.
   */
  routes?: FastifyPluginAsyncTypebox | undefined
  /** Registers the application's routes without a session. */
  publicRoutes?: FastifyPluginAsyncTypebox | undefined
  /** Adds hooks and decorators of the application, for all routes except health checks and metrics. */
  plugins?: FastifyPluginAsync | undefined
  /** The application's own errors, for the OpenAPI document. Its routes throw them as `new ApiError(kind)`. */
  errors?: readonly ErrorKind[] | undefined
  /** Transport of the store's connections, for `/metrics`: `tcp`, `tls` or `unix`. */
  transport: string
  /** One server, a cluster, or Redis Sentinel; for `/metrics`. Default `single`. */
  topology?: Topology
  /** Session cookie only over HTTPS, with the prefix `__Host-`. */
  secureCookie: boolean
  /**
   * Origins such as `https://shop.example` whose pages may send state-changing requests with the cookie.
   * Default: only the origin of the request's `Host`.
   */
  publicOrigins?: readonly string[]
  /** Serve `/openapi.json` and `/docs`. Default true. */
  docs?: boolean
  logger?: FastifyServerOptions['logger']
  /** Logs a line for each request. Default false. */
  logRequests?: boolean
  /** Default: `defaultLimits`. */
  limits?: Partial<Limits>
  /** Event loop delay above which requests are rejected, in milliseconds. Default 0: no limit. */
  maxEventLoopDelayMs?: number
  /** Default: no limits. */
  loginLimits?: LoginLimits
  /** Proxies whose `X-Forwarded-For` is trusted. Default: none. */
  trustProxy?: TrustedProxies | undefined
  /** Registers spans for requests. Default: no tracing. */
  traceRequests?: ((app: FastifyInstance) => Promise<void>) | undefined
  /** Number of Redis connections, reported by `/metrics`. Default: not reported. */
  poolSize?: number
}

const NO_LOGIN_LIMITS: LoginLimits = { perUser: 0, perAddress: 0, windowSeconds: 1 }

/** Builds the application without listening, so that tests can inject requests. */
export async function buildApp(options: AppOptions): Promise<FastifyInstance> {
  const { store, authenticator, transport, topology = 'single', secureCookie } = options
  const { publicOrigins = [], docs = true, maxEventLoopDelayMs = 0 } = options
  const { logger = false } = options
  const limits = { ...defaultLimits, ...options.limits }
  const app = fastify({
    logger,
    logController: new RequestLog({ enabled: options.logRequests ?? false }),
    genReqId: requestIds(),
    ...serverOptions(limits),
    trustProxy: options.trustProxy ?? false,
    schemaErrorFormatter,
    frameworkErrors: answerFrameworkError,
    clientErrorHandler: answerConnectionError,
    // During shutdown, requests on open connections are answered (plugins/readiness.ts).
    return503OnClosing: false,
  })
  app.server.maxConnections = limits.connections
  app.setValidatorCompiler(validatorCompiler)
  app.removeContentTypeParser('text/plain') // browsers send it cross-site without a preflight request
  // Ignores unknown values of Expect, as RFC 9110, 10.1.1 allows: Node's 417 response has no body and no
  // error code.
  app.server.on('checkExpectation', (...request) => app.server.emit('request', ...request))

  await options.traceRequests?.(app)
  await app.register(errorsPlugin)
  await app.register(readinessPlugin, limits)
  await app.register(connectionsPlugin)
  const cookie = { secure: secureCookie }
  await app.register(fastifySessions, { store, cookie, publicOrigins, errorHandler: false })
  await app.register(loginLimitPlugin, options.loginLimits ?? NO_LOGIN_LIMITS)
  await app.register(metricsPlugin, { transport, topology, poolSize: options.poolSize })
  if (docs) await app.register(openapiPlugin, { secureCookie, errors: options.errors })
  await app.register(healthRoutes)
  await app.register(metricsRoutes)
  // Routes registered before this are never rejected because of overload.
  await app.register(async (service) => {
    await service.register(overloadPlugin, { maxEventLoopDelayMs })
    if (options.plugins) await service.register(fp(options.plugins))
    await service.register(publicRoutes, { authenticator })
    if (options.publicRoutes) await service.register(options.publicRoutes)
    await service.register(authenticatedRoutes, {
      routes: options.routes,
      dataBodyBytes: limits.dataBodyBytes,
    })
  })
  return app
}
