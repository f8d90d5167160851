import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import fp from 'fastify-plugin'
import { DataPatch, PatchedData, PatchHeaders, SessionData } from '../schemas.ts'

const routes: FastifyPluginAsyncTypebox<{ bodyBytes: number }> = async (app, { bodyBytes }) => {
  const { store } = app
  const tags = ['data']

  app.get(
    '/me/data',
    {
      schema: {
        operationId: 'getData',
        summary: 'Get the session data',
        tags,
        response: { 200: SessionData },
      },
    },
    async (request, reply) => {
      const data = await store.data(request.session.token)
      reply.header('etag', etagOf(data.version))
      return data
    },
  )

  app.patch(
    '/me/data',
    {
      bodyLimit: bodyBytes,
      // Rejects an invalid token before reading the large body; needs no round trip.
      onRequest: (request, _reply, done) => {
        store.tokenExpiresAt(request.session.token)
        done()
      },
      schema: {
        operationId: 'patchData',
        summary: 'Change fields of the session data',
        description:
          'A patch is atomic. Without `If-Match`, the last change of a field wins; changes of different fields do not overwrite each other.',
        tags,
        headers: PatchHeaders,
        body: DataPatch,
        response: { 200: PatchedData },
      },
    },
    async (request, reply) => {
      const fields = Object.fromEntries(
        Object.entries(request.body).map(([name, value]) => [name, value ?? undefined]),
      )
      const ifVersion = versionOf(request.headers['if-match'])
      const patched = await store.patch(request.session.token, fields, { ifVersion })
      reply.header('etag', etagOf(patched.version))
      return patched
    },
  )
}

const etagOf = (version: number) => `"${version}"`

/** The version in `If-Match`; undefined: any. The schema allows only `*` and our ETags. */
const versionOf = (ifMatch = '*') => (ifMatch === '*' ? undefined : Number(ifMatch.slice(1, -1)))

/** Session data of the application. */
export const dataRoutes = fp(routes, {
  name: 'data-routes',
  dependencies: ['@onetrip/session-store'],
  encapsulate: true,
})
