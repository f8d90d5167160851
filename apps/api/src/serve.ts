import { lookup } from 'node:dns/promises'
import type { ListenOptions } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import {
  type RetentionEvent,
  retentionChannel,
  type SessionStoreOptions,
} from '@onetrip/session-store'
import closeWithGrace from 'close-with-grace'
import type { FastifyBaseLogger, FastifyInstance, FastifyListenOptions } from 'fastify'
import type { TSchema } from 'typebox'
import { type AppOptions, buildApp } from './app.ts'
import { type Authenticator, trustingAuthenticator } from './authenticator.ts'
import { messageWithCause } from './error-message.ts'
import { loggerOfWarnings, loggerOptions, standardOutput } from './logging.ts'
import { type Config, loadConfig } from './read-settings.ts'
import { topologyOf, transportOf } from './redis-location.ts'
import { removedServeOptions } from './removed-settings.ts'
import { configuredStore } from './store.ts'
import { trustedProxies } from './trust-proxy.ts'

/** The parts of an application that serves this API with its own login and routes. */
export interface Application<Schema extends TSchema = TSchema>
  extends Pick<AppOptions, 'routes' | 'publicRoutes' | 'plugins' | 'errors'> {
  /** Default: accepts every user name without a password, and does not start in production. */
  authenticator?: Authenticator<Schema>
}

export interface ServeOptions<Schema extends TSchema = TSchema> extends Application<Schema> {
  /** Default: `loadConfig()`. */
  config?: Config
}

/**
 * Serves the API until SIGTERM or SIGINT, with session retention, metrics and graceful shutdown as configured. If the
 * API cannot start, or a function passed as options throws, `serve` writes the reason to standard error and exits
 * with 1.
 */
export async function serve<Schema extends TSchema>(
  options: ServeOptions<Schema> | (() => ServeOptions<Schema>) = {},
): Promise<void> {
  try {
    const given = typeof options === 'function' ? options() : options
    for (const [name, instead] of Object.entries(removedServeOptions)) {
      if (name in given) throw new Error(`the option ${name} has been removed: ${instead}`)
    }
    const { config = loadConfig(), ...application } = given
    await serveApplication(config, application)
  } catch (error) {
    process.stderr.write(`The API cannot start: ${messageWithCause(error)}\n`)
    process.exit(1)
  }
}

function logRetention(log: FastifyBaseLogger, event: RetentionEvent): void {
  if (event.type === 'failure') log.warn({ err: event.error }, 'janitor failed; it will retry')
  else if (event.type === 'run' && event.evicted > 0) log.info(event, 'janitor ended sessions')
}

/** How long shutdown may take after the drain: `Limits.finishMs`, and the time to close the store and the traces. */
const GRACE_MS = 10_000

/** The length of the window of the login limits. */
const LOGIN_LIMIT_WINDOW_SECONDS = 300

/** @throws Error with the reason why the API cannot start. */
async function serveApplication(config: Config, application: Application): Promise<void> {
  const isDevelopment = ['', 'development'].includes(config.NODE_ENV)
  const authenticator = application.authenticator ?? trustingAuthenticator(config.NODE_ENV)
  const logWarnings = loggerOfWarnings()
  const durable = config.DURABLE_ENDS === 'no' ? undefined : config.DURABLE_ENDS
  const store = configuredStore(config, {
    poolSize: config.REDIS_POOL_SIZE,
    deadlineMs: config.REDIS_DEADLINE_MS,
    idleSeconds: config.SESSION_IDLE_SECONDS,
    maxSessionsPerUser: config.MAX_SESSIONS_PER_USER,
    janitor: ownJanitor(config),
    durable: durable as SessionStoreOptions['durable'],
    tokens: {
      secrets: config.SESSION_SECRETS.split(','),
      lifetimeSeconds: config.SESSION_LIFETIME_SECONDS,
      rememberedLifetimeSeconds: Math.max(
        config.SESSION_LIFETIME_SECONDS,
        config.SESSION_REMEMBERED_SECONDS,
      ),
      ...(config.SESSION_RENEW_SECONDS > 0 && {
        renewAfterSeconds: Math.min(config.SESSION_RENEW_SECONDS, config.SESSION_LIFETIME_SECONDS),
      }),
    },
  })
  const terminal = process.stdout.isTTY
  const tracing = await configuredTracing(config, ({ message }) =>
    app.log.warn({ reason: message }, 'traces cannot be exported'),
  )
  const app = await buildApp({
    ...application,
    store,
    authenticator,
    transport: transportOf(config.REDIS_URL),
    topology: topologyOf(config.REDIS_URL),
    poolSize: config.REDIS_POOL_SIZE,
    secureCookie: !isDevelopment,
    publicOrigins: config.PUBLIC_ORIGINS.split(',').filter((origin) => origin !== ''),
    docs: config.DOCS,
    logger: {
      ...loggerOptions(config.LOG_LEVEL, terminal),
      ...(tracing && { mixin: tracing.logFields }),
      ...(!terminal && { stream: standardOutput() }),
    },
    logRequests: ['debug', 'trace'].includes(config.LOG_LEVEL),
    loginLimits: {
      perUser: config.LOGIN_LIMIT_PER_USER,
      perAddress: config.LOGIN_LIMIT_PER_ADDRESS,
      windowSeconds: LOGIN_LIMIT_WINDOW_SECONDS,
    },
    trustProxy: trustedProxies(config.TRUST_PROXY),
    maxEventLoopDelayMs: config.MAX_EVENT_LOOP_DELAY_MS,
    traceRequests: tracing?.traceRequests,
  })
  if (config.NODE_ENV === '') {
    app.log.warn(
      `NODE_ENV is not set: ${application.authenticator ? '' : 'logins need no password, and '}the session cookie works without HTTPS. Set NODE_ENV=production, or NODE_ENV=development to hide this warning`,
    )
  }
  retentionChannel.subscribe((event) => logRetention(app.log, event as RetentionEvent))
  logWarnings(app.log)
  closeWithGrace(
    { delay: config.SHUTDOWN_DRAIN_MS + GRACE_MS, logger: app.log },
    async ({ err, signal }) => {
      if (err) app.log.fatal({ err }, 'shutting down after an unexpected error')
      else app.log.info({ signal }, 'shutting down')
      app.readiness.stop()
      if (!err) await delay(config.SHUTDOWN_DRAIN_MS)
      await app.close()
      await store.close()
      await tracing?.close(MAX_TRACE_FLUSH_MS)
    },
  )
  await store.ready()
  await logNodes(app)
  await listen(app, config)
}

const ownJanitor = ({ JANITOR_INTERVAL_SECONDS, MAX_SESSIONS }: Config) =>
  JANITOR_INTERVAL_SECONDS === 0
    ? 'elsewhere'
    : {
        maxSessions: MAX_SESSIONS,
        intervalSeconds: JANITOR_INTERVAL_SECONDS,
        sweepKeys: true, // the database is the API's own
      }

/** Logs the servers that hold keys. */
async function logNodes({ log, store }: FastifyInstance): Promise<void> {
  const states = await store.ping().catch(() => []) // later log lines report an outage that begins now
  log.info({ nodes: states.map(({ node }) => node) }, 'connected to Redis')
  for (const { node, error } of states) {
    if (error) log.warn({ node, reason: error.message }, 'Redis node is unavailable')
  }
}

/** Time to export the remaining traces during shutdown. */
const MAX_TRACE_FLUSH_MS = 1_000

/** Loads the OpenTelemetry packages only if traces are exported. */
async function configuredTracing(config: Config, onProblem: (error: Error) => void) {
  if (!config.OTEL_EXPORTER_OTLP_ENDPOINT) return undefined
  const { startTracing } = await import('./tracing/tracing.ts')
  return startTracing(config, onProblem)
}

/** @throws Error with the setting to change if the port is in use, or cannot be shared on this platform. */
async function listen(app: FastifyInstance, { HOST, PORT, REUSE_PORT }: Config): Promise<void> {
  try {
    // For the second address of localhost, Fastify creates another server, to which our limits do not apply.
    const host = HOST === 'localhost' ? (await lookup(HOST)).address : HOST
    // Fastify passes on all options to Node, but its type lacks this one.
    const options: FastifyListenOptions & Pick<ListenOptions, 'reusePort'> = {
      host,
      port: PORT,
      reusePort: REUSE_PORT,
    }
    await app.listen(options)
  } catch (error) {
    const reasons: Partial<Record<string, string>> = {
      EADDRINUSE: `port ${PORT} on ${HOST} is in use; stop the program that listens on it, set PORT, or set REUSE_PORT=true for all processes that share it`,
      ENOTSUP: 'this platform does not support REUSE_PORT=true; give each process its own PORT',
    }
    const reason = reasons[(error as NodeJS.ErrnoException).code ?? '']
    throw reason === undefined ? error : new Error(reason, { cause: error })
  }
}
