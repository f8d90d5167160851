import { createServer, type IncomingMessage } from 'node:http'
import { type ExpressSession, expressSessions } from '@onetrip/session-store/express'
import express from 'express'
import { Server } from 'socket.io'

const sessions = await expressSessions({
  url: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379',
  tokens: { secrets: [process.env.SESSION_SECRET ?? ''] }, // 32 characters or more
  cookie: { secure: process.env.NODE_ENV !== 'development' },
})
const app = express()
app.use(sessions.middleware)
app.post('/login', async ({ onetrip }, response) => {
  const { user } = await onetrip.login('ada') // after you have authenticated the user
  response.json({ user })
})
app.post('/logout', async ({ onetrip }, response) => {
  response.json({ ended: await onetrip.logout() })
})
app.use(sessions.errorHandler)

const server = createServer(app)
const io = new Server(server)
io.engine.use(sessions.middleware)
io.use(async (socket, next) => {
  const { onetrip } = socket.request as IncomingMessage & { onetrip: ExpressSession }
  try {
    const watching = onetrip.watch(() => socket.conn.close())
    socket.conn.on('close', () => watching.then((stop) => stop()).catch(() => {}))
    await watching
    next()
  } catch {
    next(new Error('login required'))
  }
})
io.on('connection', (socket) => socket.emit('welcome'))

server.listen(Number(process.env.PORT ?? 3000), () => console.log(server.address()))
process.once('SIGTERM', () => io.close(() => sessions.close()))
