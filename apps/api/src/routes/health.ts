import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { NodeState, SessionStore } from '@onetrip/session-store'
import fp from 'fastify-plugin'
import { Type } from 'typebox'
import { ApiError } from '../errors.ts'
import { Exactly } from '../schemas.ts'

const Alive = Exactly(
  { status: Type.Literal('ok') },
  { description: 'Alive', examples: [{ status: 'ok' }] },
)
const Ready = Exactly(
  {
    status: Type.Unsafe<'ready' | 'degraded'>({ type: 'string', enum: ['ready', 'degraded'] }),
    strategy: Type.String(),
    nodes: Type.Optional(
      Type.Integer({
        description:
          'Only if degraded: number of servers that hold keys (the primaries of a cluster)',
      }),
    ),
    unavailable: Type.Optional(
      Type.Integer({ description: 'Only if degraded: number of unavailable servers' }),
    ),
    refusesWrites: Type.Optional(
      Type.String({
        description:
          'Only if degraded: why a server executes reads only, such as MISCONF (full disk) or OOM (full memory)',
      }),
    ),
  },
  {
    description:
      'Ready for requests. degraded: some requests get 503, those for some of the sessions and items, or those that write',
    examples: [
      { status: 'ready', strategy: 'batch' },
      { status: 'degraded', strategy: 'batch', nodes: 1, unavailable: 0, refusesWrites: 'MISCONF' },
    ],
  },
)
const Exclusion = Exactly({
  exclude: Type.Optional(
    Type.Literal('redis', {
      description:
        'Do not check Redis. For load balancers whose instances share one Redis: an outage of it should not remove all of them',
    }),
  ),
})

/** Shorter than the timeout of a probe (Kubernetes: 1 s by default). */
const PING_TIMEOUT_MS = 900

const routes: FastifyPluginAsyncTypebox = async (app) => {
  const pingRedis = sharedPing(app.store)
  const { sender: strategy } = app.store.info

  app.get(
    '/healthz',
    {
      logLevel: 'warn',
      schema: {
        operationId: 'isAlive',
        summary: 'Liveness: the process answers. Does not check Redis',
        tags: ['operations'],
        response: { 200: Alive },
      },
    },
    async () => ({ status: 'ok' as const }),
  )

  app.get(
    '/readyz',
    {
      logLevel: 'error', // no warning per probe: the alert RedisDown reports an outage
      schema: {
        operationId: 'isReady',
        summary: 'Readiness: the instance can serve requests',
        description:
          '503 while Redis does not answer or is a replica, and during shutdown. Redis Cluster: 503 while no primary answers; degraded while some do not.',
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
      const refusal = states.find(({ refusesWrites }) => refusesWrites)?.refusesWrites
      // Another instance may be connected to the primary. All of them share a full disk or memory, and can still
      // check sessions.
      if (refusal === 'READONLY') throw new ApiError('API_REPLICA')
      if (unavailable === 0 && !refusal) return { status: 'ready' as const, strategy }
      const refusesWrites = refusal && { refusesWrites: refusal }
      return {
        status: 'degraded' as const,
        strategy,
        nodes: states.length,
        unavailable,
        ...refusesWrites,
      }
    },
  )
}

/** Concurrent probes share one check of Redis. */
function sharedPing(store: SessionStore): () => Promise<NodeState[]> {
  let ping: Promise<NodeState[]> | undefined
  return () => {
    ping ??= store.ping(PING_TIMEOUT_MS).finally(() => {
      ping = undefined
    })
    return ping
  }
}

/** `/healthz` for restart policies, `/readyz` for load balancers. Neither changes anything in Redis. */
export const healthRoutes = fp(routes, {
  name: 'health-routes',
  dependencies: ['errors', '@onetrip/session-store', 'readiness'],
  encapsulate: true,
})
