import { createServer, type IncomingMessage, ServerResponse } from 'node:http'
import { type ExpressSession, expressSessions } from '@onetrip/session-store/express'
import express from 'express'
import { WebSocketServer } from 'ws'

const sessions = await expressSessions({
  redis: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379',
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
const sockets = new WebSocketServer({ noServer: true })
server.on('upgrade', (request: IncomingMessage & { onetrip: ExpressSession }, socket, head) => {
  socket.on('error', () => {}) // Node has removed its own listener
  sessions.middleware(request, new ServerResponse(request), async () => {
    try {
      await request.onetrip.check()
    } catch {
      socket.end('HTTP/1.1 401 Unauthorized\r\nConnection: close\r\n\r\n')
      return
    }
    sockets.handleUpgrade(request, socket, head, (opened) => {
      const end = () => opened.close(4401, 'the session has ended')
      const watching = request.onetrip.watch(end)
      watching.catch(end)
      opened.on('close', () => watching.then((stop) => stop()).catch(() => {}))
      opened.on('error', () => {})
      opened.send('welcome')
    })
  })
})

server.listen(Number(process.env.PORT ?? 3000), () => console.log(server.address()))
process.once('SIGTERM', () => {
  for (const open of sockets.clients) open.close(1001)
  server.close(() => sessions.close())
})
