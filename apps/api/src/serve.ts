import { lookup } from 'node:dns/promises'
import { setTimeout as delay } from 'node:timers/promises'
import {
  createSessionStore,
  parseRedisUrl,
  type RetentionEvent,
  retentionChannel,
  type StoreWarning,
  type StrategyName,
  warningChannel,
} from '@onetrip/session-store'
import closeWithGrace from 'close-with-grace'
import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import { buildApp } from './app.ts'
import { trustingAuthenticator } from './authenticator.ts'
import { type Config, redisTls } from './config.ts'
import { defaultLimits } from './limits.ts'
import { loggerOptions } from './logging.ts'
import { pollRedis } from './metrics/redis-poller.ts'
import { createRegistry } from './metrics/registry.ts'
import { trustedProxies } from './trust-proxy.ts'
import type { WorkerLine } from './workers/worker.ts'

function logRetention(log: FastifyBaseLogger, event: RetentionEvent): void {
  if (event.type === 'failure')
    log.warn({ err: event.error }, 'the janitor failed and will try again')
  else if (event.type === 'run' && event.evicted > 0) log.info(event, 'sessions were ended')
}

/**
 * Serves the API from this process, until it is told to stop.
 *
 * @param primary The line to the primary process, in a worker.
 * @throws Error that says why it cannot.
 */
export async function serve(config: Config, primary?: WorkerLine): Promise<void> {
  const authenticator = trustingAuthenticator(config.NODE_ENV)
  const tls = redisTls(config)
  const store = createSessionStore({
    url: config.REDIS_URL,
    tls,
    strategy: config.STRATEGY as StrategyName,
    poolSize: config.REDIS_POOL_SIZE,
    deadlineMs: config.REDIS_DEADLINE_MS,
    idleSeconds: config.SESSION_IDLE_SECONDS,
    maxSessionsPerUser: config.MAX_SESSIONS_PER_USER,
    janitor: config.JANITOR_INTERVAL_SECONDS > 0 && {
      maxSessions: config.MAX_SESSIONS,
      intervalSeconds: config.JANITOR_INTERVAL_SECONDS,
    },
    tokens: {
      secrets: config.SESSION_SECRETS.split(','),
      lifetimeSeconds: config.SESSION_LIFETIME_SECONDS,
    },
  })
  const registry = createRegistry()
  const app = await buildApp({
    store,
    authenticator,
    transport: parseRedisUrl(config.REDIS_URL).transport,
    secureCookie: config.NODE_ENV !== 'development',
    publicOrigins: config.PUBLIC_ORIGINS.split(',').filter((origin) => origin !== ''),
    docs: config.DOCS,
    reportFile: config.REPORT_FILE,
    logger: loggerOptions(config.LOG_LEVEL, process.stdout.isTTY),
    logRequests: config.LOG_REQUESTS,
    limits: {
      connections: config.MAX_CONNECTIONS,
      leaveMs: Math.min(defaultLimits.leaveMs, config.SHUTDOWN_GRACE_MS / 2),
      flushMs: Math.min(defaultLimits.flushMs, config.SHUTDOWN_GRACE_MS / 4),
    },
    loginLimits: {
      perUser: config.LOGIN_LIMIT_PER_USER,
      perAddress: config.LOGIN_LIMIT_PER_ADDRESS,
      windowSeconds: config.LOGIN_LIMIT_WINDOW_SECONDS,
    },
    trustProxy: trustedProxies(config.TRUST_PROXY),
    maxEventLoopDelayMs: config.MAX_EVENT_LOOP_DELAY_MS,
    metrics: { registry, ...(primary && { gather: primary.mergeMetrics(registry) }) },
  })
  retentionChannel.subscribe((event) => logRetention(app.log, event as RetentionEvent))
  warningChannel.subscribe((warning) => {
    const { code, message } = warning as StoreWarning
    if (primary === undefined || primary.isFirst) app.log.warn({ code }, message)
  })
  const ending = closeWithGrace(
    {
      delay: config.SHUTDOWN_DRAIN_MS + config.SHUTDOWN_GRACE_MS,
      logger: app.log,
      ...(primary && { skip: [...toldTwice] }),
    },
    async ({ err }) => {
      if (err) app.log.fatal({ err }, 'ending after an unexpected error')
      app.readiness.stop()
      if (!err) await delay(config.SHUTDOWN_DRAIN_MS)
      await app.close()
      await store.close()
    },
  )
  if (primary) endOnce(ending.close)
  await store.ready(config.STARTUP_DEADLINE_MS)
  if (config.REDIS_INFO_INTERVAL_SECONDS > 0 && (primary === undefined || primary.isFirst)) {
    pollRedis({
      url: config.REDIS_URL,
      tls,
      intervalSeconds: config.REDIS_INFO_INTERVAL_SECONDS,
      deadlineMs: config.REDIS_DEADLINE_MS,
      registry,
      log: app.log,
    })
  }
  await primary?.mayListen()
  await listen(app, config)
}

/** @throws Error that names the port if it is in use. */
async function listen(app: FastifyInstance, { HOST, PORT }: Config): Promise<void> {
  try {
    // Fastify gives the second address of localhost a server of its own, without any of our limits.
    const host = HOST === 'localhost' ? (await lookup(HOST)).address : HOST
    await app.listen({ host, port: PORT })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    const message = `port ${PORT} on ${HOST} is in use; stop the program that listens there, or set PORT`
    throw new Error(message, { cause: error })
  }
}

/** What a worker gets from its primary and perhaps from a terminal or a service manager, too. */
const toldTwice = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

/** As close-with-grace does it, but a second signal is no impatience: the primary knows when to kill. */
function endOnce(end: () => void): void {
  let told = false
  const onSignal = () => {
    if (!told) end()
    told = true
  }
  for (const signal of toldTwice) process.on(signal, onSignal)
}
