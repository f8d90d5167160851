import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type SessionStore, StoreError } from '@onetrip/session-store'
import fp from 'fastify-plugin'
import { Type } from 'typebox'
import { ApiError } from '../errors.ts'
import { settlesWithin } from '../settles-within.ts'

const Alive = Type.Object(
  { status: Type.Literal('ok') },
  { additionalProperties: false, description: 'The process answers', examples: [{ status: 'ok' }] },
)
const Ready = Type.Object(
  { status: Type.Literal('ready'), strategy: Type.String() },
  {
    additionalProperties: false,
    description: 'Requests are welcome',
    examples: [{ status: 'ready', strategy: 'batch' }],
  },
)
const Exclusion = Type.Object(
  {
    exclude: Type.Optional(
      Type.Literal('redis', {
        description: 'Ask about the process alone: for those who balance over several on one Redis',
      }),
    ),
  },
  { additionalProperties: false },
)

/** Shorter than a probe waits: in Kubernetes 1 s by default. */
const REDIS_WITHIN_MS = 900

const routes: FastifyPluginAsyncTypebox = async (app) => {
  const redisAnswers = sharedPing(app.store)
  const { strategy } = app.store

  app.get(
    '/healthz',
    {
      logLevel: 'warn',
      schema: {
        operationId: 'isAlive',
        summary: 'Whether the process answers, with or without Redis',
        tags: ['operations'],
        response: { 200: Alive },
      },
    },
    async () => ({ status: 'ok' as const }),
  )

  app.get(
    '/readyz',
    {
      logLevel: 'error', // that Redis is away is logged once, not at every probe
      schema: {
        operationId: 'isReady',
        summary: 'Whether to send requests here',
        description:
          'No (503) while Redis does not answer, and as soon as the process is told to stop.',
        tags: ['operations'],
        querystring: Exclusion,
        response: { 200: Ready },
      },
    },
    async (request) => {
      if (app.readiness.stopping) throw new ApiError('API_STOPPING')
      if (request.query.exclude !== 'redis') await redisAnswers()
      return { status: 'ready' as const, strategy }
    },
  )
}

/** However many ask at once, Redis is asked once, and nobody waits longer than a probe does. */
function sharedPing(store: SessionStore): () => Promise<void> {
  let ping: Promise<void> | undefined
  return async () => {
    ping ??= store.ping().finally(() => {
      ping = undefined
    })
    if (await settlesWithin(ping, REDIS_WITHIN_MS)) return
    const message = `Redis did not answer within ${REDIS_WITHIN_MS} ms`
    throw new StoreError('ONETRIP_OUTCOME_UNKNOWN', message, { mayHaveWritten: false })
  }
}

/** `/healthz` for those who restart, `/readyz` for those who balance. None of them writes anything. */
export const healthRoutes = fp(routes, {
  name: 'health-routes',
  dependencies: ['errors', '@onetrip/session-store', 'readiness'],
  encapsulate: true,
})
