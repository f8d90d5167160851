import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { NAME_PATTERN, parseRedisUrl } from '@onetrip/session-store'
import { RedisStore } from 'connect-redis'
import express, { type ErrorRequestHandler, type Request, type RequestHandler } from 'express'
import session from 'express-session'
import { type Config, loadConfig } from '../../apps/api/src/config.ts'
import { processMetrics } from './support/metrics.ts'
import { nodeRedis } from './support/node-redis.ts'
import { closeOnSignal } from './support/serve.ts'
import { COUNTS, SESSION_PREFIX, type SessionContent, withView } from './support/session-data.ts'

// Like connect-redis.ts, but with Express and express-session, for which connect-redis was written.

const namePattern = new RegExp(NAME_PATTERN, 'u')
const BEARER = 'Bearer '
const COOKIE = 'connect.sid' // the default of express-session

declare module 'express-session' {
  interface SessionData extends SessionContent {}
}

type Redis = Awaited<ReturnType<typeof nodeRedis>>

function loggedIn({ session }: Request): { user: string; lastSeenAt: number } {
  const { user, lastSeenAt } = session
  if (user !== undefined && lastSeenAt !== undefined) return { user, lastSeenAt }
  throw Object.assign(new Error('unknown or ended session'), { status: 401 })
}

/** @throws an error with the status 400, which Express sends as the answer. */
function nameIn(body: unknown, field: 'user' | 'item'): string {
  const name = (body as Record<string, unknown> | undefined)?.[field]
  if (typeof name === 'string' && namePattern.test(name)) return name
  throw Object.assign(new Error(`${field} is missing or invalid`), { status: 400 })
}

/** The load generator sends the token as a bearer token. Converts it to the cookie that a browser would send. */
const cookieOfToken: RequestHandler = ({ headers }, _response, next) => {
  const { authorization } = headers
  if (authorization?.startsWith(BEARER)) {
    headers.cookie = `${COOKIE}=${authorization.slice(BEARER.length)}`
  }
  next()
}

/** The routes with sessions. Sessions are loaded for these routes only. */
function sessionRoutes(redis: Redis, config: Config): express.Router {
  const [secret = ''] = config.SESSION_SECRETS.split(',')
  const maxAge = 1000 * config.SESSION_IDLE_SECONDS
  const routes = express.Router()
  routes.use(
    cookieOfToken,
    session({
      // A request that does not change the session writes nothing, as with our store.
      store: new RedisStore({ client: redis, prefix: SESSION_PREFIX, disableTouch: true }),
      secret: config.SESSION_SECRETS.split(','),
      resave: false,
      saveUninitialized: false,
      cookie: { secure: false, sameSite: 'lax', maxAge },
    }),
    express.json({ limit: '4kb' }),
  )

  routes.post('/login', async (request, response) => {
    const user = nameIn(request.body, 'user')
    if (request.session.user !== undefined) {
      await new Promise((resolve) => void request.session.regenerate(resolve))
    }
    Object.assign(request.session, { user, lastSeenAt: Date.now(), views: [] })
    // The value of the cookie.
    const signature = createHmac('sha256', secret).update(request.sessionID).digest('base64')
    const value = `s:${request.sessionID}.${signature.replace(/=+$/, '')}`
    const expiresAt = Date.now() + maxAge
    response.json({ token: encodeURIComponent(value), user, expiresAt })
  })

  routes.post('/views', async (request, response) => {
    const { user } = loggedIn(request)
    const item = nameIn(request.body, 'item')
    const viewedAt = Date.now()
    request.session.views = withView(request.session.views, { item, viewedAt })
    request.session.lastSeenAt = viewedAt
    // express-session saves the session before it sends the answer.
    response.json({ user, item, views: await redis.zIncrBy(COUNTS, 1, item) })
  })

  routes.get('/me', (request, response) => void response.json(loggedIn(request)))

  routes.get('/me/views', (request, response) => {
    loggedIn(request)
    response.json({ items: request.session.views ?? [] })
  })

  routes.post('/logout', async (request, response) => {
    loggedIn(request)
    await new Promise((resolve) => void request.session.destroy(resolve))
    response.clearCookie(COOKIE).status(204).end()
  })
  return routes
}

function publicRoutes(redis: Redis, config: Config): express.Router {
  const routes = express.Router()
  routes.get('/items/popular', async ({ query }, response) => {
    const limit = Number(query.limit ?? 10)
    const counts = await redis.zRangeWithScores(COUNTS, 0, limit - 1, { REV: true })
    response.json({ items: counts.map(({ value, score }) => ({ item: value, views: score })) })
  })
  routes.get('/readyz', async (_request, response) => {
    await redis.ping()
    response.json({ status: 'ready', strategy: 'express' })
  })
  const { transport } = parseRedisUrl(config.REDIS_URL)
  const metrics = processMetrics({ strategy: 'express', transport })
  routes.get('/metrics', (_request, response) => void response.type('text/plain').send(metrics()))
  return routes
}

const answerError: ErrorRequestHandler = (error, _request, response, _next) => {
  const status = error.code === 'ONETRIP_INVALID_INPUT' ? 400 : (error.status ?? 500)
  if (status >= 500) process.stderr.write(`${error.stack}\n`)
  response.status(status).json({ statusCode: status, message: error.message })
}

const config = loadConfig()
const redis = await nodeRedis({ redisUrl: config.REDIS_URL })
const app = express()
app.disable('x-powered-by')
app.disable('etag') // like apps/api
app.use(publicRoutes(redis, config), sessionRoutes(redis, config), answerError)
const server = app.listen(config.PORT, config.HOST)
await once(server, 'listening')
const close = async () => {
  const closed = once(server, 'close')
  server.close()
  server.closeIdleConnections()
  await closed
}
closeOnSignal({ close }, () => redis.close())
