import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { limitQuery, Me, Recent, View, ViewBody, Views } from '../schemas.ts'

/** What needs a session. Every store call verifies the token before it asks Redis. */
export const authenticatedRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const { store } = app

  app.post('/views', { schema: { body: ViewBody, response: { 200: View } } }, async (request) => {
    const { item } = request.body
    const { user, views } = await store.recordView(app.tokenOf(request), item)
    return { user, item, views }
  })

  app.get('/me', { schema: { response: { 200: Me } } }, async (request) =>
    store.checkToken(app.tokenOf(request)),
  )

  app.get('/me/views', { schema: { response: { 200: Views } } }, async (request) => ({
    items: await store.viewedItems(app.tokenOf(request)),
  }))

  app.get(
    '/recent',
    { schema: { querystring: limitQuery(50), response: { 200: Recent } } },
    async (request) => {
      await store.checkToken(app.tokenOf(request))
      return { sessions: await store.recentSessions(request.query.limit) }
    },
  )

  app.post('/logout', async (request, reply) => {
    await store.logout(app.tokenOf(request))
    app.clearTokenCookie(reply)
    return reply.code(204).send()
  })
}
