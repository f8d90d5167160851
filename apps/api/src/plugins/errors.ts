import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { StoreError } from '@onetrip/session-store'
import { errorBody, errorHeaders, SessionRequestError } from '@onetrip/session-store/fastify'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { ApiError, errorTable, fromSession, fromStatus } from '../errors.ts'
import { lineLimit } from '../logging.ts'

/** How many lines of a code were left out before this one; undefined: so is this one. */
const linesLeftOut = lineLimit(10)

/**
 * One place that turns errors into answers (`errors.ts` is the table). What may be tried again says so:
 * `mayHaveWritten`, `retrySafe` and `Retry-After`.
 */
export const errorsPlugin = fp(
  async (app) => {
    app.setErrorHandler<FastifyError | StoreError | SessionRequestError | ApiError>(answerError)
    app.setNotFoundHandler(() => {
      throw new ApiError('API_NOT_FOUND')
    })
  },
  { name: 'errors' },
)

function answerError(
  error: FastifyError | StoreError | SessionRequestError | ApiError | null | undefined,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  if (error instanceof SessionRequestError) return answer(fromSession(error), request, reply)
  if (error instanceof StoreError || error instanceof ApiError) return answer(error, request, reply)
  // A route of the application can throw anything, also null.
  const refusal = fromStatus(error?.statusCode ?? 500, error?.message)
  if (refusal) return answer(refusal, request, reply)
  request.log.error({ err: error, ...routeOf(request) }, 'unexpected error')
  return answer(new ApiError('API_INTERNAL'), request, reply)
}

function answer(
  error: StoreError | ApiError,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  const { statusCode } = errorTable[error.code]
  reply.code(statusCode).headers(errorHeaders(error))
  if (statusCode >= 500 && error.code !== 'API_INTERNAL') {
    const { code, message, mayHaveWritten } = error
    const leftOut = linesLeftOut(code)
    if (leftOut !== undefined) {
      const details = { code, mayHaveWritten, ...routeOf(request), ...(leftOut > 0 && { leftOut }) }
      request.log.warn(details, message)
    }
  }
  // Only with errors, since it costs 1.5 us: what the log lines of this request have as `reqId`.
  reply.header('x-request-id', request.id)
  return reply.send(errorBody(error, statusCode))
}

const routeOf = ({ method, routeOptions }: FastifyRequest) => ({ method, route: routeOptions.url })

/** For what Fastify refuses before there is a route: a path that is no path, or too long. */
export function answerFrameworkError(
  error: FastifyError,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  // Fastify's message repeats the path.
  const refusal = fromStatus(error.statusCode ?? 500, 'the path is not valid')
  answer(refusal ?? new ApiError('API_INTERNAL'), request, reply)
}

const codeOfConnectionError: Record<string, ApiError> = {
  ERR_HTTP_REQUEST_TIMEOUT: new ApiError('API_REQUEST_TIMEOUT'),
  HPE_HEADER_OVERFLOW: new ApiError('API_HEADERS_TOO_LARGE'),
}
const notHttp = new ApiError('API_BAD_REQUEST', 'this is not HTTP')

/** For what is no request at all; the connection ends. Nothing of it is logged. */
export function answerConnectionError(error: { code?: string }, socket: Socket): void {
  // https://nodejs.org/api/http.html#event-clienterror
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  // Behind a whole request came what is none: an error in place of its answer would say that nothing
  // was written. Node has no other name for that answer; its own handler of this event asks the same.
  const { _httpMessage: pending } = socket as { _httpMessage?: ServerResponse | null }
  if (pending?.req.complete) {
    pending.once('close', () => socket.destroy())
    return
  }
  const body = errorBody(codeOfConnectionError[error.code ?? ''] ?? notHttp)
  const text = JSON.stringify(body)
  const head = [
    `HTTP/1.1 ${body.statusCode} ${body.error}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(text)}`,
    'connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${text}`, () => socket.destroy())
}
