import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type SessionStore, StoreError } from '@onetrip/session-store'
import { Type } from 'typebox'

const Alive = Type.Object({ status: Type.Literal('ok') })
const Ready = Type.Object({ status: Type.Literal('ready'), strategy: Type.String() })

/** Shorter than a probe waits: HAProxy 2 s, Kubernetes 1 s by default. */
const REDIS_WITHIN_MS = 900

/**
 * `/healthz`: the process answers. `/readyz`: it is to be sent requests, that is, it is not about to
 * stop and Redis answers; `?exclude=redis` leaves Redis out, for those who balance over processes that
 * share one. None of them writes anything.
 */
export const healthRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const redisAnswers = sharedPing(app.store)
  const { strategy } = app.store

  app.get('/healthz', { logLevel: 'warn', schema: { response: { 200: Alive } } }, async () => ({
    status: 'ok' as const,
  }))

  app.get(
    '/readyz',
    {
      logLevel: 'error', // that Redis is away is logged once, not at every probe
      schema: {
        querystring: Type.Object(
          { exclude: Type.Optional(Type.Literal('redis')) },
          { additionalProperties: false },
        ),
        response: { 200: Ready },
      },
    },
    async (request) => {
      if (app.readiness.stopping)
        throw new StoreError('ONETRIP_NOT_SENT', 'this process is stopping')
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
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(() => {
      const message = `Redis did not answer within ${REDIS_WITHIN_MS} ms`
      late.reject(new StoreError('ONETRIP_OUTCOME_UNKNOWN', message, { mayHaveWritten: false }))
    }, REDIS_WITHIN_MS)
    try {
      await Promise.race([ping, late.promise])
    } finally {
      clearTimeout(timer)
    }
  }
}
