import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { StoreError } from '@onetrip/session-store'
import { errorBody, errorHeaders } from '@onetrip/session-store/fastify'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { ApiError, errorTable, fromStatus } from '../errors.ts'
import { lineLimit } from '../logging.ts'

const MAX_LINES_PER_SECOND = 10
const suppressedLines = lineLimit(MAX_LINES_PER_SECOND)

/** Converts every error into a response, as the table in `errors.ts` says. Adds the headers of all responses. */
export const errorsPlugin = fp(
  async (app) => {
    app.addHook('onRequest', (request, reply, done) => {
      addHeaders(request, reply)
      done()
    })
    app.setErrorHandler<FastifyError | StoreError | ApiError>(answerError)
    app.setNotFoundHandler(() => {
      throw new ApiError('API_NOT_FOUND')
    })
  },
  { name: 'errors' },
)

/** `x-request-id` is the `reqId` of the request's log lines. */
function addHeaders({ id }: FastifyRequest, reply: FastifyReply): void {
  reply.header('x-request-id', id).header('x-content-type-options', 'nosniff')
}

function answerError(
  error: FastifyError | StoreError | ApiError | null | undefined,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  if (error instanceof StoreError || error instanceof ApiError) {
    return answer(error, request, reply)
  }
  // A route of the application can throw anything, even null.
  const clientError = fromStatus(error?.statusCode ?? 500, error?.message)
  if (clientError) return answer(clientError, request, reply)
  request.log.error({ err: error, ...routeOf(request) }, 'unexpected error')
  return answer(new ApiError('API_INTERNAL'), request, reply)
}

function answer(
  error: StoreError | ApiError,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  const { statusCode } = error instanceof StoreError ? errorTable[error.code] : error
  reply.code(statusCode).headers(errorHeaders(error))
  if (statusCode >= 500 && error.code !== 'API_INTERNAL') {
    const { code, message, mayHaveWritten } = error
    const leftOut = suppressedLines(code)
    if (leftOut !== undefined) {
      const details = { code, mayHaveWritten, ...routeOf(request), ...(leftOut > 0 && { leftOut }) }
      request.log.warn(details, message)
    }
  }
  return reply.send(errorBody(error, statusCode))
}

const routeOf = ({ method, routeOptions }: FastifyRequest) => ({ method, route: routeOptions.url })

/** For requests that Fastify rejects before routing: the path is malformed or too long. */
export function answerFrameworkError(
  error: FastifyError,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  addHeaders(request, reply) // no hook has run
  // Not Fastify's message, which quotes the path.
  const clientError = fromStatus(error.statusCode ?? 500, 'malformed path')
  answer(clientError ?? new ApiError('API_INTERNAL'), request, reply)
}

const codeOfConnectionError: Record<string, ApiError> = {
  ERR_HTTP_REQUEST_TIMEOUT: new ApiError('API_REQUEST_TIMEOUT'),
  HPE_HEADER_OVERFLOW: new ApiError('API_HEADERS_TOO_LARGE'),
}
const notHttp = new ApiError('API_BAD_REQUEST', 'not a valid HTTP request')

/** For bytes that are not a valid request: answers and closes the connection. Nothing is logged. */
export function answerConnectionError(error: { code?: string }, socket: Socket): void {
  // https://nodejs.org/api/http.html#event-clienterror
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  // The invalid bytes follow a complete request that is still in progress. Its own response is sent: an error
  // instead would claim that nothing was written. Node has no public name for that response; its default
  // handler of this event uses the same field.
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
