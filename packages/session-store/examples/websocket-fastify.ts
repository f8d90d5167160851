import websocket from '@fastify/websocket'
import { fastifySessions } from '@onetrip/session-store/fastify'
import Fastify from 'fastify'

const app = Fastify()
await app.register(fastifySessions, {
  url: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379',
  tokens: { secrets: [process.env.SESSION_SECRET ?? ''] }, // 32 characters or more
  cookie: { secure: process.env.NODE_ENV !== 'development' },
})
await app.register(websocket)

app.post('/login', async (_request, reply) => {
  const { user } = await reply.login('ada') // after you have authenticated the user
  return { user }
})
app.post('/logout', async (_request, reply) => ({ ended: await reply.logout() }))
app.get(
  '/live',
  // Answers 401 or 403 instead of opening the WebSocket.
  { websocket: true, preValidation: async ({ session }) => void (await session.check()) },
  async (socket, { session }) => {
    const watching = session.watch(() => socket.close(4401, 'the session has ended'))
    socket.on('close', () => watching.then((stop) => stop()).catch(() => {}))
    await watching
    socket.send('welcome')
  },
)

process.once('SIGTERM', () => void app.close())
console.log(await app.listen({ port: Number(process.env.PORT ?? 3000) }))
