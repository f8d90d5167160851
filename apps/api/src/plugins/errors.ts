import { StoreError, type StoreErrorCode } from '@onetrip/session-store'
import type { FastifyError } from 'fastify'
import fp from 'fastify-plugin'

const statusOf: Record<StoreErrorCode, number> = {
  ONETRIP_INVALID_INPUT: 400,
  ONETRIP_INVALID_TOKEN: 401,
  ONETRIP_EXPIRED_TOKEN: 401,
  ONETRIP_UNKNOWN_SESSION: 401,
  ONETRIP_NOT_SENT: 503,
  ONETRIP_OVERLOADED: 503,
  ONETRIP_OUTCOME_UNKNOWN: 503,
  ONETRIP_REFUSED: 503,
}

const HTTP_ERRORS: Record<number, string> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  503: 'Service Unavailable',
}

const RETRY_AFTER_SECONDS = 1

/**
 * One place that turns errors into answers of Fastify's shape. An answer of 503 says whether the write
 * may have happened (`mayHaveWritten`) and whether the request may be sent again (`retrySafe`).
 */
export const errorsPlugin = fp(
  async (app) => {
    app.setErrorHandler<FastifyError | StoreError>((error, request, reply) => {
      if (error instanceof StoreError) {
        const statusCode = statusOf[error.code]
        const { code, message, mayHaveWritten, retrySafe } = error
        const shape = { statusCode, code, error: HTTP_ERRORS[statusCode], message }
        if (statusCode === 401) {
          return reply.code(401).header('www-authenticate', 'Bearer').send(shape)
        }
        if (statusCode !== 503) return reply.code(statusCode).send(shape)
        request.log.warn({ code, mayHaveWritten }, message)
        return reply
          .code(503)
          .header('retry-after', RETRY_AFTER_SECONDS)
          .send({ ...shape, mayHaveWritten, retrySafe })
      }
      if (error.statusCode !== undefined && error.statusCode < 500) return reply.send(error)
      request.log.error({ err: error }, 'unexpected error')
      return reply.code(500).send({
        statusCode: 500,
        error: 'Internal Server Error',
        message: 'Something went wrong here; it has been logged',
      })
    })
  },
  { name: 'errors' },
)
