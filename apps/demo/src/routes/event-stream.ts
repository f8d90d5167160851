import type { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { Type } from 'typebox'

/** Response schemas of a route that sends server-sent events. */
export const eventStream = (example: string) => ({
  200: {
    description: 'The events as they happen',
    content: {
      'text/event-stream': { schema: Type.Unsafe<never>(Type.String({ examples: [example] })) },
    },
  },
})

/** Sends the events, unbuffered by proxies. */
export function sendEvents(reply: FastifyReply, events: Readable): FastifyReply {
  reply.headers({ 'cache-control': 'no-store', 'x-accel-buffering': 'no' })
  return reply.type('text/event-stream').send(events)
}
