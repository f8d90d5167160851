import { setTimeout as delay } from 'node:timers/promises'
import { createSessionStore, type RetentionEvent, type StrategyName } from '@onetrip/session-store'
import closeWithGrace from 'close-with-grace'
import type { FastifyBaseLogger } from 'fastify'
import { buildApp } from './app.ts'
import { trustingAuthenticator } from './authenticator.ts'
import { loadConfig } from './config.ts'
import { loggerOptions } from './logging.ts'
import { pollRedis } from './metrics/redis-poller.ts'

const transports: Record<string, string> = { 'redis:': 'tcp', 'rediss:': 'tls', 'unix:': 'unix' }

function logRetention(log: FastifyBaseLogger, event: RetentionEvent): void {
  if (event.type === 'failure') log.warn({ err: event.error }, 'the janitor will try again')
  else if (event.type === 'run' && event.evicted > 0) log.info(event, 'sessions were ended')
}

async function start(): Promise<void> {
  const config = loadConfig()
  const authenticator = trustingAuthenticator(config.NODE_ENV)
  const store = createSessionStore({
    url: config.REDIS_URL,
    strategy: config.STRATEGY as StrategyName,
    poolSize: config.REDIS_POOL_SIZE,
    deadlineMs: config.REDIS_DEADLINE_MS,
    idleSeconds: config.SESSION_IDLE_SECONDS,
    tokens: {
      secrets: config.SESSION_SECRETS.split(','),
      lifetimeSeconds: config.SESSION_LIFETIME_SECONDS,
    },
  })
  const app = await buildApp({
    store,
    authenticator,
    transport: transports[new URL(config.REDIS_URL).protocol] ?? 'tcp',
    secureCookie: config.NODE_ENV !== 'development',
    publicOrigins: config.PUBLIC_ORIGINS.split(',').filter((origin) => origin !== ''),
    docs: config.DOCS,
    logger: loggerOptions(config.LOG_LEVEL, process.stdout.isTTY),
    logRequests: config.LOG_REQUESTS,
  })
  const graceMs = config.SHUTDOWN_DRAIN_MS + config.SHUTDOWN_GRACE_MS
  closeWithGrace({ delay: graceMs, logger: app.log }, async ({ err }) => {
    if (err) app.log.fatal({ err }, 'ending after an unexpected error')
    app.readiness.stop()
    if (!err) await delay(config.SHUTDOWN_DRAIN_MS)
    await app.close()
    await store.close()
  })
  await store.ready(config.STARTUP_DEADLINE_MS)
  // In every process, since they take turns; the naive variant has no connection for it.
  if (config.JANITOR_INTERVAL_SECONDS > 0 && store.strategy !== 'naive') {
    const janitor = store.janitor({
      maxSessions: config.MAX_SESSIONS,
      intervalSeconds: config.JANITOR_INTERVAL_SECONDS,
      onProgress: (event) => logRetention(app.log, event),
    })
    janitor.start()
  }
  if (config.REDIS_INFO_INTERVAL_SECONDS > 0) {
    pollRedis({
      url: config.REDIS_URL,
      intervalSeconds: config.REDIS_INFO_INTERVAL_SECONDS,
      deadlineMs: config.REDIS_DEADLINE_MS,
      registry: app.metrics,
      log: app.log,
    })
  }
  await app.listen({ host: config.HOST, port: config.PORT })
}

try {
  await start()
} catch (error) {
  const { message, cause } = error as Error
  const reason =
    cause instanceof Error ? ` (${cause.message || (cause as { code?: string }).code})` : ''
  process.stderr.write(`The API cannot start: ${message}${reason}\n`)
  process.exit(1)
}
