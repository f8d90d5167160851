import { parseRedisUrl } from '@onetrip/session-store'
import fastify from 'fastify'
import { loadConfig } from '../../apps/api/src/read-settings.ts'
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
import { processMetrics } from './support/metrics.ts'
import { closeOnSignal } from './support/serve.ts'

// The upper limit of the framework: Fastify with the schemas of the routes and constant answers, without tokens and
// metrics of requests.

const config = loadConfig()
const app = fastify()

app.post<{ Body: { item: string } }>(
  '/views',
  { schema: { body: ViewBody, response: { 200: View } } },
  async ({ body }) => ({ user: 'nobody', item: body.item, views: 1 }),
)

// The other routes that the load generator uses.
app.post<{ Body: { user: string } }>(
  '/login',
  { schema: { body: UserCredentials, response: { 200: Login } } },
  async ({ body }) => ({
    token: 'x'.repeat(76), // as long as a token, for requests of the same size
    user: body.user,
    expiresAt: Date.now() + 1000 * config.SESSION_LIFETIME_SECONDS,
  }),
)
app.get('/me', { schema: { response: { 200: Me } } }, async () => ({
  user: 'nobody',
  lastSeenAt: Date.now(),
}))
app.get('/me/views', { schema: { response: { 200: Views } } }, async () => ({ items: [] }))
app.get(
  '/items/popular',
  { schema: { querystring: limitQuery(10), response: { 200: Popular } } },
  async () => ({ items: [] }),
)
app.post('/logout', async (_request, reply) => reply.code(204).send())
app.get('/readyz', async () => ({ status: 'ready', strategy: 'bare' }))
const { transport } = parseRedisUrl(config.REDIS_URL)
const metrics = processMetrics({ strategy: 'bare', transport })
app.get('/metrics', async (_request, reply) => reply.type('text/plain').send(metrics()))

closeOnSignal(app, async () => {})
await app.listen({ host: config.HOST, port: config.PORT })
