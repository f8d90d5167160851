import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import fp from 'fastify-plugin'
import { ApiError } from '../errors.ts'
import {
  Ended,
  limitQuery,
  Me,
  NoContent,
  pageQuery,
  Recent,
  SessionParams,
  UserSessions,
} from '../schemas.ts'

/** How long ago a session must have been seen for `GET /me` to write that it is seen again. */
const TOUCH_EVERY_SECONDS = 10

const routes: FastifyPluginAsyncTypebox = async (app) => {
  const { store } = app
  const tags = ['sessions']

  app.get(
    '/me',
    {
      schema: {
        operationId: 'getMe',
        summary: 'Who is logged in',
        description: `The session is seen by this, which is written once in ${TOUCH_EVERY_SECONDS} s at most.`,
        tags,
        response: { 200: Me },
      },
    },
    async (request) => request.session.touch(TOUCH_EVERY_SECONDS),
  )

  app.get(
    '/me/sessions',
    {
      schema: {
        operationId: 'listSessions',
        summary: "The user's sessions, the latest login first",
        description:
          'The id of a session is no credential: a token is an id and its signature. A page may have fewer sessions than `limit`, even none: another one follows for as long as there is a `nextCursor`.',
        tags,
        querystring: pageQuery(50),
        response: { 200: UserSessions },
      },
    },
    async (request) => store.userSessions(request.session.token, request.query),
  )

  app.delete(
    '/me/sessions/:id',
    {
      schema: {
        operationId: 'endSession',
        summary: "End one of the user's sessions",
        tags,
        params: SessionParams,
        response: { 204: NoContent },
        'x-errors': [404],
      },
    },
    async (request, reply) => {
      const { id } = request.params
      const { token } = request.session
      if (!(await store.revokeSession(token, id))) {
        throw new ApiError('API_NOT_FOUND', 'you have no session of this id')
      }
      if (token.startsWith(`${id}.`)) reply.clearSessionCookie()
      return reply.code(204).send()
    },
  )

  app.delete(
    '/me/sessions',
    {
      schema: {
        operationId: 'logoutEverywhere',
        summary: "End all of the user's sessions, this one too",
        tags,
        response: { 200: Ended },
      },
    },
    async (request, reply) => {
      const ended = await store.logoutEverywhere(request.session.token)
      reply.clearSessionCookie()
      return { ended }
    },
  )

  app.post(
    '/logout',
    {
      schema: {
        operationId: 'logout',
        summary: 'End the session, if there still is one',
        tags,
        response: { 204: NoContent },
      },
    },
    async (_request, reply) => {
      await reply.logout()
      return reply.code(204).send()
    },
  )

  app.get(
    '/recent',
    {
      schema: {
        operationId: 'listRecent',
        summary: 'Who was seen last, newest first',
        description: 'Users and times; no token and no id of a session.',
        tags,
        querystring: limitQuery(50),
        response: { 200: Recent },
      },
    },
    async (request) => {
      await request.session.check()
      return { sessions: await store.recentSessions(request.query.limit) }
    },
  )
}

/** The session of the token, and those of the same user. */
export const sessionRoutes = fp(routes, {
  name: 'session-routes',
  dependencies: ['errors', '@onetrip/session-store'],
  encapsulate: true,
})
