import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import fp from 'fastify-plugin'
import { View, ViewBody, ViewHeaders, Views } from '../schemas.ts'

const routes: FastifyPluginAsyncTypebox = async (app) => {
  app.post(
    '/views',
    {
      schema: {
        operationId: 'recordView',
        summary: 'Record that the session viewed an item',
        description: 'Takes one round trip to Redis, shared with concurrent views.',
        tags: ['views'],
        body: ViewBody,
        headers: ViewHeaders,
        response: { 200: View },
      },
    },
    async (request) => {
      const { item } = request.body
      const { user, views } = await request.session.recordView(item, {
        idempotencyKey: request.headers['idempotency-key'],
      })
      return { user, item, views }
    },
  )

  app.get(
    '/me/views',
    {
      schema: {
        operationId: 'listViews',
        summary: 'List the items that the session viewed last, newest first',
        tags: ['views'],
        response: { 200: Views },
      },
    },
    async (request) => ({ items: await request.session.viewedItems() }),
  )
}

/** Page views, the hot path of the benchmarks. */
export const viewRoutes = fp(routes, {
  name: 'view-routes',
  dependencies: ['@onetrip/session-store'],
  encapsulate: true,
})
