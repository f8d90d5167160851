import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { NodeState, SessionStore } from '@onetrip/session-store'
import fp from 'fastify-plugin'
import { Type } from 'typebox'
import { ApiError } from '../errors.ts'

const Alive = Type.Object(
  { status: Type.Literal('ok') },
  { additionalProperties: false, description: 'The process answers', examples: [{ status: 'ok' }] },
)
const Ready = Type.Object(
  {
    status: Type.Unsafe<'ready' | 'degraded'>({ type: 'string', enum: ['ready', 'degraded'] }),
    strategy: Type.String(),
    nodes: Type.Optional(
      Type.Integer({
        description: 'Only if degraded: servers that hold keys, as masters of a cluster',
      }),
    ),
    unavailable: Type.Optional(
      Type.Integer({ description: 'Only if degraded: how many of them cannot be used' }),
    ),
  },
  {
    additionalProperties: false,
    description:
      'Requests are welcome; degraded: those for a part of the sessions and items are answered with 503',
    examples: [
      { status: 'ready', strategy: 'batch' },
      { status: 'degraded', strategy: 'batch', nodes: 3, unavailable: 1 },
    ],
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
  const pingRedis = sharedPing(app.store)
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
          '503 while Redis does not answer, and from the beginning of a shutdown on. With a Redis Cluster: while no master answers; if some do not, the status is degraded. While sessions move to another Redis: while the home does not answer; if the other side does not, the status is degraded.',
        tags: ['operations'],
        querystring: Exclusion,
        response: { 200: Ready },
      },
    },
    async (request) => {
      if (app.readiness.stopping) throw new ApiError('API_STOPPING')
      if (request.query.exclude === 'redis') return { status: 'ready' as const, strategy }
      const states = await pingRedis()
      const unavailable = states.filter(({ error }) => error).length
      if (unavailable === 0) return { status: 'ready' as const, strategy }
      return { status: 'degraded' as const, strategy, nodes: states.length, unavailable }
    },
  )
}

/** However many ask at once, Redis is asked once, and nobody waits longer than a probe does. */
function sharedPing(store: SessionStore): () => Promise<NodeState[]> {
  let ping: Promise<NodeState[]> | undefined
  return () => {
    ping ??= store.ping(REDIS_WITHIN_MS).finally(() => {
      ping = undefined
    })
    return ping
  }
}

/** `/healthz` for those who restart, `/readyz` for those who balance. None of them writes anything. */
export const healthRoutes = fp(routes, {
  name: 'health-routes',
  dependencies: ['errors', '@onetrip/session-store', 'readiness'],
  encapsulate: true,
})
