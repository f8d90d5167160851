import type { ErrorRequestHandler, Express, Request, Response } from 'express'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { listen } from '../application.ts'

/** `POST /login` → what the application does. Returns the answer, or its status if that is an error. */
export type Routes<Call> = Record<string, (call: Call) => Promise<object | number>>

/** What a case sends. */
export interface Body {
  user: string
  field: string
  value: unknown
}

/** express-session reports a failed save after it has begun to answer. */
const onError: ErrorRequestHandler = (error, _request, response, _next) => {
  if (response.headersSent) response.destroy()
  else response.status(error.statusCode ?? error.status ?? 500).json({})
}

/** Serves the routes on a free port. `close` also closes the store. */
export async function serveExpress<Call>(
  app: Express,
  routes: Routes<Call>,
  callOf: (request: Request, response: Response) => Call,
  closeStore: () => Promise<unknown>,
  ...errorHandlers: ErrorRequestHandler[]
) {
  for (const [route, run] of Object.entries(routes)) {
    const [method = '', path = ''] = route.split(' ')
    app[method === 'GET' ? 'get' : 'post'](path, async (request, response) => {
      const answer = await run(callOf(request, response))
      if (typeof answer === 'number') response.status(answer).json({})
      else response.json(answer)
    })
  }
  const { url, server } = await listen(app.use(...errorHandlers, onError))
  const close = async () => {
    server.closeAllConnections()
    server.close()
    await closeStore()
  }
  return { url, close }
}

/** As `serveExpress`, with Fastify. */
export async function serveFastify<Call>(
  app: FastifyInstance,
  routes: Routes<Call>,
  callOf: (request: FastifyRequest<{ Body: Body }>, reply: FastifyReply) => Call,
  closeStore: () => Promise<unknown>,
) {
  for (const [route, run] of Object.entries(routes)) {
    const [method = '', url = ''] = route.split(' ')
    app.route<{ Body: Body }>({
      method: method as 'GET',
      url,
      async handler(request, reply) {
        const answer = await run(callOf(request, reply))
        return typeof answer === 'number' ? reply.code(answer).send({}) : answer
      },
    })
  }
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  const close = async () => {
    await app.close()
    await closeStore()
  }
  return { url, close }
}
