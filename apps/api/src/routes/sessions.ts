import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import fp from 'fastify-plugin'
import { ApiError } from '../errors.ts'
import {
  Ended,
  EndSessionsQuery,
  limitQuery,
  Me,
  NoContent,
  Recent,
  SessionParams,
  UserSessions,
} from '../schemas.ts'

/** `GET /me` updates the last-seen time of a session only if it is older than this. */
const TOUCH_EVERY_SECONDS = 10

const routes: FastifyPluginAsyncTypebox = async (app) => {
  const { store } = app
  const tags = ['sessions']

  app.get(
    '/me',
    {
      schema: {
        operationId: 'getMe',
        summary: 'Get the user of the session',
        description: `Counts as use of the session. The last-seen time is updated at most once in ${TOUCH_EVERY_SECONDS} s.`,
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
        summary: "List the user's sessions, latest login first",
        description: 'A session id is not a credential: a token is an id and its signature.',
        tags,
        response: { 200: UserSessions },
      },
    },
    async (request) => store.userSessions(request.session.token),
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
      },
    },
    async (request, reply) => {
      const { id } = request.params
      const { token } = request.session
      if (!(await store.revokeSession(token, id))) {
        throw new ApiError('API_NOT_FOUND', 'you have no session with this id')
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
        summary: "End all of the user's sessions, with `others=true` all but this one",
        tags,
        querystring: EndSessionsQuery,
        response: { 200: Ended },
      },
    },
    async (request, reply) => {
      const { token } = request.session
      if (request.query.others) return { ended: await store.endOtherSessions(token) }
      const ended = await store.logoutEverywhere(token)
      reply.clearSessionCookie()
      return { ended }
    },
  )

  app.get(
    '/recent',
    {
      schema: {
        operationId: 'listRecent',
        summary: 'List the most recently used sessions, newest first',
        description: 'Users and times, without tokens and session ids.',
        tags,
        querystring: limitQuery(50),
        response: { 200: Recent },
      },
    },
    async (request) => {
      const asked = [store.recentSessions(request.query.limit), request.session.check()] as const
      const [sessions] = await Promise.all(asked)
      return { sessions }
    },
  )
}

/** Routes for the session of the token and other sessions of its user. */
export const sessionRoutes = fp(routes, {
  name: 'session-routes',
  dependencies: ['errors', '@onetrip/session-store'],
  encapsulate: true,
})
