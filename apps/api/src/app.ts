import type { SessionStore } from '@onetrip/session-store'
import fastify, { type FastifyInstance, type FastifyServerOptions, LogController } from 'fastify'
import type { Authenticator } from './authenticator.ts'
import { errorsPlugin } from './plugins/errors.ts'
import { metricsPlugin } from './plugins/metrics.ts'
import { sessionPlugin } from './plugins/session.ts'
import { storePlugin } from './plugins/store.ts'
import { authenticatedRoutes } from './routes/authenticated.ts'
import { healthRoutes } from './routes/health.ts'
import { publicRoutes } from './routes/public.ts'
import { schemaErrorFormatter, validatorCompiler } from './validation.ts'

export interface AppOptions {
  /** Used, not closed. */
  store: SessionStore
  authenticator: Authenticator
  /** Where `store` finds Redis, for `/metrics`: `tcp`, `tls` or `unix`. */
  transport: string
  /** Cookies only over HTTPS. */
  secureCookie: boolean
  logger?: FastifyServerOptions['logger']
}

const BODY_LIMIT_BYTES = 4096

/** The application, not yet listening: a test can inject requests. */
export async function buildApp(options: AppOptions): Promise<FastifyInstance> {
  const { store, authenticator, transport, secureCookie, logger = false } = options
  const app = fastify({
    logger,
    // Two lines per request cost more than the rest of the route; errors are logged by their handler.
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: BODY_LIMIT_BYTES,
    requestTimeout: 30_000,
    schemaErrorFormatter,
    // While it closes, requests on open connections are still answered.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
  })
  app.setValidatorCompiler(validatorCompiler)
  // A connection that was busy when closing began stays open after its answer, until somebody closes it.
  app.addHook('preClose', async () => {
    const timer = setInterval(() => app.server.closeIdleConnections(), 50)
    app.server.once('close', () => clearInterval(timer))
  })

  await app.register(errorsPlugin)
  await app.register(storePlugin, { store })
  await app.register(sessionPlugin, { secureCookie })
  await app.register(metricsPlugin, { transport })
  await app.register(healthRoutes)
  await app.register(publicRoutes, { authenticator })
  await app.register(authenticatedRoutes)
  return app
}
