import cookie from '@fastify/cookie'
import session from '@fastify/session'
import { redisAddress } from '@onetrip/stack/address.ts'
import { RedisStore } from 'connect-redis'
import fastify, { type FastifyInstance, type FastifyRequest, LogController } from 'fastify'
import { type Config, loadConfig } from '../../apps/api/src/config.ts'
import { validatorCompiler } from '../../apps/api/src/validation.ts'
import { processMetrics } from './support/metrics.ts'
import { nodeRedis } from './support/node-redis.ts'
import { countRoundTrips } from './support/round-trips.ts'
import { closeOnSignal } from './support/serve.ts'
import { COUNTS, SESSION_PREFIX, type SessionContent, withView } from './support/session-data.ts'
import { answers, bodies, limit } from './support/session-schemas.ts'

// What many sites have: @fastify/session with connect-redis, set up as their READMEs have it, the last
// 25 views in the session, and a counter of what is popular. The same work as seen from outside;
// docs/other-clients.md tells what it does for it, and what that loses.

const BEARER = 'Bearer '
const COOKIE = 'sessionId' // the default of @fastify/session

declare module 'fastify' {
  interface Session extends SessionContent {}
}

type Redis = Awaited<ReturnType<typeof nodeRedis>>

/** The type of `request.session` in this program is that of our own plugin. */
const sessionOf = (request: FastifyRequest) =>
  request.session as unknown as session.FastifySessionObject

function loggedIn(request: FastifyRequest): { user: string; lastSeenAt: number } {
  const { user, lastSeenAt } = sessionOf(request)
  if (user !== undefined && lastSeenAt !== undefined) return { user, lastSeenAt }
  throw Object.assign(new Error('there is no such session (any more)'), { statusCode: 401 })
}

/** What needs a session, which is loaded for these routes only. */
async function sessionRoutes(app: FastifyInstance, redis: Redis, config: Config): Promise<void> {
  // The load generator sends the token as an API's client does; a browser would send this cookie.
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
    // As with our store, a request that changes nothing writes nothing.
    rolling: false,
    cookie: { secure: false, sameSite: 'lax', maxAge: 1000 * config.SESSION_IDLE_SECONDS },
  })

  app.post<{ Body: { user: string } }>(
    '/login',
    { schema: { body: bodies.login, response: { 200: answers.login } } },
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
    { schema: { body: bodies.view, response: { 200: answers.view } } },
    async (request) => {
      const { user } = loggedIn(request)
      const { item } = request.body
      const viewedAt = Date.now()
      sessionOf(request).views = withView(sessionOf(request).views, { item, viewedAt })
      sessionOf(request).lastSeenAt = viewedAt
      // The session itself is saved when the answer is about to be sent.
      return { user, item, views: await redis.zIncrBy(COUNTS, 1, item) }
    },
  )

  app.get('/me', { schema: { response: { 200: answers.me } } }, async (request) =>
    loggedIn(request),
  )

  app.get('/me/views', { schema: { response: { 200: answers.views } } }, async (request) => {
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
    { schema: { querystring: limit, response: { 200: answers.popular } } },
    async (request) => {
      const counts = await redis.zRangeWithScores(COUNTS, 0, request.query.limit - 1, { REV: true })
      return { items: counts.map(({ value, score }) => ({ item: value, views: score })) }
    },
  )
  app.get('/healthz', async () => ({ status: 'ok' }))
  app.get('/readyz', async () => {
    await redis.ping()
    return { status: 'ready', strategy: 'connect-redis' }
  })
  const { transport } = redisAddress(config.REDIS_URL)
  const metrics = processMetrics({ strategy: 'connect-redis', transport })
  app.get('/metrics', async (_request, reply) =>
    reply.type('text/plain; version=0.0.4; charset=utf-8').send(metrics()),
  )
}

const config = loadConfig()
const redis = await nodeRedis({ redisUrl: config.REDIS_URL })
countRoundTrips(redis)
const app = fastify({
  logger: { level: config.LOG_LEVEL },
  logController: new LogController({ disableRequestLogging: true }), // as apps/api
  return503OnClosing: false,
  forceCloseConnections: 'idle',
})
app.setValidatorCompiler(validatorCompiler)
await app.register(async (scope) => await publicRoutes(scope, redis, config))
await app.register(async (scope) => await sessionRoutes(scope, redis, config))
closeOnSignal(app, () => redis.close())
await app.listen({ host: config.HOST, port: config.PORT })
