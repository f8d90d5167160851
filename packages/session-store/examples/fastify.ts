import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { fastifySessions } from '@onetrip/session-store/fastify'
import Fastify from 'fastify'

const salt = randomBytes(16)
const hash = async (text: string) => (await promisify(scrypt)(text, salt, 32)) as Buffer
const users = new Map([['ada', await hash('lovelace')]]) // yours are in a database
const nobody = randomBytes(32) // makes an unknown user take as long as a wrong password

const app = Fastify()
await app.register(fastifySessions, {
  redis: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379',
  tokens: { secrets: [process.env.SESSION_SECRET ?? ''] }, // 32 characters or more
  cookie: { secure: process.env.NODE_ENV !== 'development' },
})

const text = { type: 'string', maxLength: 128 }
const properties = { user: text, password: text }
const body = { type: 'object', required: ['user', 'password'], properties }
app.post<{ Body: { user: string; password: string } }>(
  '/login',
  { schema: { body } },
  async ({ body: { user, password } }, reply) => {
    const isCorrect = timingSafeEqual(await hash(password), users.get(user) ?? nobody)
    if (!isCorrect) return reply.code(401).send({ message: 'wrong user or password' })
    await reply.login(user)
    return { user }
  },
)
app.post<{ Params: { item: string } }>('/views/:item', ({ session, params }) =>
  session.recordView(params.item),
)
app.get('/me', ({ session }) => session.check())
app.post('/logout', async (_request, reply) => ({ ended: await reply.logout() }))

process.once('SIGTERM', () => void app.close())
console.log(await app.listen({ port: Number(process.env.PORT ?? 3000) }))
