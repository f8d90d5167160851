import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type ExpressSession, expressSessions } from '@onetrip/session-store/express'

type Request = IncomingMessage & { onetrip: ExpressSession }

const sessions = await expressSessions({
  redis: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379',
  tokens: { secrets: [process.env.SESSION_SECRET ?? ''] }, // 32 characters or more
  cookie: { secure: process.env.NODE_ENV !== 'development' },
})

async function resultOf({ method, url = '', onetrip }: Request): Promise<object | undefined> {
  const route = `${method} ${url}`
  if (route === 'POST /login') {
    const { user } = await onetrip.login('ada') // after you have authenticated the user
    return { user }
  }
  if (route.startsWith('POST /views/')) return await onetrip.recordView(url.slice('/views/'.length))
  if (route === 'GET /me') return await onetrip.check()
  if (route === 'POST /logout') return { ended: await onetrip.logout() }
  return undefined
}

async function respond(request: Request, response: ServerResponse): Promise<void> {
  try {
    const result = await resultOf(request)
    response.writeHead(result ? 200 : 404, { 'content-type': 'application/json' })
    response.end(JSON.stringify(result ?? { message: 'not found' }))
  } catch (error) {
    sessions.errorHandler(error, request, response, () => {
      console.error(error) // not an error of the session
      response.writeHead(500).end()
    })
  }
}

const server = createServer((request, response) => {
  sessions.middleware(request, response, () => respond(request as Request, response))
})
server.listen(Number(process.env.PORT ?? 3000), () => console.log(server.address()))
process.once('SIGTERM', () => server.close(() => sessions.close()))
