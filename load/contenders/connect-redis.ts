import cookie from '@fastify/cookie'
import session from '@fastify/session'
import { parseRedisUrl } from '@onetrip/session-store'
import { RedisStore } from 'connect-redis'
import fastify, { type FastifyInstance, type FastifyRequest, LogController } from 'fastify'
import { type Config, loadConfig } from '../../apps/api/src/read-settings.ts'
import {
  Login,
  limitQuery,
  Me,
  Popular,
  UserCredentials,
  View,
  ViewBody,
  Views,
} from '../../apps/api/src/schemas.ts'
import { validatorCompiler } from '../../apps/api/src/validation.ts'
import { processMetrics } from './support/metrics.ts'
import { nodeRedis } from './support/node-redis.ts'
import { closeOnSignal } from './support/serve.ts'
import { COUNTS, SESSION_PREFIX, type SessionContent, withView } from './support/session-data.ts'

// A common setup: @fastify/session with connect-redis, configured as in their READMEs, with the last 25 views in the
// session and a sorted set for popular items. The routes behave like those of apps/api; docs/measurements/other-clients.md
// describes the Redis commands and the possible loss of data.

const BEARER = 'Bearer '
const COOKIE = 'sessionId' // the default of @fastify/session

declare module 'fastify' {
  interface Session extends SessionContent {}
}

type Redis = Awaited<ReturnType<typeof nodeRedis>>

/** In this program, `request.session` has the type of our own plugin. */
const sessionOf = (request: FastifyRequest) =>
  request.session as unknown as session.FastifySessionObject

function loggedIn(request: FastifyRequest): { user: string; lastSeenAt: number } {
  const { user, lastSeenAt } = sessionOf(request)
  if (user !== undefined && lastSeenAt !== undefined) return { user, lastSeenAt }
  throw Object.assign(new Error('unknown or ended session'), { statusCode: 401 })
}

/** The routes with sessions. Sessions are loaded for these routes only. */
async function sessionRoutes(app: FastifyInstance, redis: Redis, config: Config): Promise<void> {
  // The load generator sends the token as a bearer token. Convert it to the cookie that a browser would send.
  app.addHook('onRequest', async ({ headers }) => {
    const { authorization } = headers
    if (authorization?.startsWith(BEARER)) {
      headers.cookie = `${COOKIE}=${authorization.slice(BEARER.length)}`
    }
  })
  await app.register(cookie)
  await app.register(session, {
    store: new RedisStore({ client: redis, prefix: SESSION_PREFIX }),
    secret: config.SESSION_SECRETS.split(','),
    saveUninitialized: false,
    // A request that does not change the session writes nothing, as with our store.
    rolling: false,
    cookie: { secure: false, sameSite: 'lax', maxAge: 1000 * config.SESSION_IDLE_SECONDS },
  })

  app.post<{ Body: { user: string } }>(
    '/login',
    { schema: { body: UserCredentials, response: { 200: Login } } },
    async (request) => {
      const { user } = request.body
      if (sessionOf(request).user !== undefined) await sessionOf(request).regenerate()
      Object.assign(sessionOf(request), { user, lastSeenAt: Date.now(), views: [] })
      const token = encodeURIComponent(sessionOf(request).encryptedSessionId)
      const expiresAt = Date.now() + 1000 * config.SESSION_IDLE_SECONDS
      return { token, user, expiresAt }
    },
  )

  app.post<{ Body: { item: string } }>(
    '/views',
    { schema: { body: ViewBody, response: { 200: View } } },
    async (request) => {
      const { user } = loggedIn(request)
      const { item } = request.body
      const viewedAt = Date.now()
      sessionOf(request).views = withView(sessionOf(request).views, { item, viewedAt })
      sessionOf(request).lastSeenAt = viewedAt
      // @fastify/session saves the session before it sends the answer.
      return { user, item, views: await redis.zIncrBy(COUNTS, 1, item) }
    },
  )

  app.get('/me', { schema: { response: { 200: Me } } }, async (request) => loggedIn(request))

  app.get('/me/views', { schema: { response: { 200: Views } } }, async (request) => {
    loggedIn(request)
    return { items: sessionOf(request).views ?? [] }
  })

  app.post('/logout', async (request, reply) => {
    loggedIn(request)
    await sessionOf(request).destroy()
    return reply.clearCookie(COOKIE).code(204).send()
  })
}

async function publicRoutes(app: FastifyInstance, redis: Redis, config: Config): Promise<void> {
  app.get<{ Querystring: { limit: number } }>(
    '/items/popular',
    { schema: { querystring: limitQuery(10), response: { 200: Popular } } },
    async (request) => {
      const counts = await redis.zRangeWithScores(COUNTS, 0, request.query.limit - 1, { REV: true })
      return { items: counts.map(({ value, score }) => ({ item: value, views: score })) }
    },
  )
  app.get('/readyz', async () => {
    await redis.ping()
    return { status: 'ready', strategy: 'connect-redis' }
  })
  const { transport } = parseRedisUrl(config.REDIS_URL)
  const metrics = processMetrics({ strategy: 'connect-redis', transport })
  app.get('/metrics', async (_request, reply) =>
    reply.type('text/plain; version=0.0.4; charset=utf-8').send(metrics()),
  )
}

const config = loadConfig()
const redis = await nodeRedis({ redisUrl: config.REDIS_URL })
const app = fastify({
  logger: { level: config.LOG_LEVEL },
  logController: new LogController({ disableRequestLogging: true }), // like apps/api
  return503OnClosing: false,
  forceCloseConnections: 'idle',
})
app.setValidatorCompiler(validatorCompiler)
await app.register(async (scope) => await publicRoutes(scope, redis, config))
await app.register(async (scope) => await sessionRoutes(scope, redis, config))
closeOnSignal(app, () => redis.close())
await app.listen({ host: config.HOST, port: config.PORT })
