import { PassThrough } from 'node:stream'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { eventStream, sendEvents } from './event-stream.ts'

/** Proxies close a connection that is silent for longer, such as HAProxy after a minute. */
const HEARTBEAT_MS = 30_000

const EVENTS = `Server-sent events without data: \`watching\` first, and \`ended\` last, when the session ends: by a logout in another
browser, for example. A stream that ends without \`ended\` says nothing about the session: reconnect. \`ended\`
also comes when the token expires, although the cookie may have been renewed: ask \`GET /me\`.`

/** The event stream of a session, which ends with it. */
export const sessionEventRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const streams = new Set<PassThrough>()
  app.addHook('preClose', async () => {
    for (const stream of streams) stream.end()
  })

  app.get(
    '/demo/session/events',
    {
      exposeHeadRoute: false, // its stream would never end
      logLevel: 'warn',
      schema: {
        operationId: 'watchSession',
        summary: 'Stream the end of the session',
        description: EVENTS,
        tags: ['demo'],
        response: eventStream('event: watching\ndata: {}\n\n'),
      },
    },
    async (request, reply) => {
      const stream = new PassThrough()
      const send = (text: string) => stream.writableEnded || stream.write(text)
      send('event: watching\ndata: {}\n\n')
      const stop = await request.session.watch(() => {
        send('event: ended\ndata: {}\n\n')
        stream.end()
      })
      streams.add(stream)
      const heartbeat = setInterval(send, HEARTBEAT_MS, ': watching\n\n')
      stream.once('close', () => {
        stop()
        clearInterval(heartbeat)
        streams.delete(stream)
      })
      return sendEvents(reply, stream)
    },
  )
}
