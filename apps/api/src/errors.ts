import { StoreError, type StoreErrorCode, storeErrors } from '@onetrip/session-store'

/** Properties of an error response. */
interface ErrorProperties {
  readonly statusCode: number
  /** Whether a client can safely retry: nothing is counted twice. */
  readonly retrySafe: boolean
  /** Whether Redis may have executed a write of the failed request. */
  readonly mayHaveWritten: boolean
  /** Default message. */
  readonly meaning: string
}

/** An error of an application. */
export interface ErrorKind extends ErrorProperties {
  readonly code: string
}

/** Nothing was written; a retry fails in the same way. */
const rejected = (statusCode: number, meaning: string): ErrorProperties => ({
  statusCode,
  retrySafe: false,
  mayHaveWritten: false,
  meaning,
})

/** Nothing was written; a retry may succeed. */
const retryable = (statusCode: number, meaning: string): ErrorProperties => ({
  ...rejected(statusCode, meaning),
  retrySafe: true,
})

/** Errors that the store and its plugin do not have. */
const ownErrors = {
  API_BAD_REQUEST: rejected(400, 'malformed request'),
  API_WRONG_CREDENTIALS: rejected(401, 'wrong user name or password'),
  API_FORBIDDEN: rejected(403, 'not allowed'),
  API_NOT_FOUND: rejected(404, 'not found'),
  API_REQUEST_TIMEOUT: retryable(408, 'the request was not received in time'),
  API_PIPELINED: retryable(409, 'sent before the response to a request that may change something'),
  API_BODY_TOO_LARGE: rejected(413, 'the body is too large'),
  API_URL_TOO_LONG: rejected(414, 'a path parameter is too long'),
  API_UNSUPPORTED_MEDIA_TYPE: rejected(415, 'the body must be application/json'),
  API_TOO_MANY_REQUESTS: retryable(429, 'too many requests; wait for the time in Retry-After'),
  API_HEADERS_TOO_LARGE: rejected(431, 'the headers are too large'),
  API_INTERNAL: {
    statusCode: 500,
    retrySafe: false,
    mayHaveWritten: true,
    meaning: 'internal error; the log has the details',
  },
  API_OVERLOADED: retryable(503, 'overloaded; the request was not processed'),
  API_REPLICA: retryable(503, 'connected to a replica of Redis, which refuses writes'),
  API_STOPPING: retryable(503, 'shutting down; retry on another instance'),
} satisfies Record<string, ErrorProperties>

export type ApiErrorCode = keyof typeof ownErrors

/** All errors of the API, by code. */
export const errorTable: Readonly<Record<StoreErrorCode | ApiErrorCode, ErrorProperties>> = {
  ...ownErrors,
  ...storeErrors,
  // Only requests with If-Match cause it; for those RFC 9110 requires 412.
  ONETRIP_CONFLICT: rejected(412, 'the data has changed: its version is not that of If-Match'),
}

/** An error response. The client sees the message, so it must not contain secrets or internals. */
export class ApiError extends Error {
  override name = 'ApiError'
  readonly code: string
  readonly statusCode: number
  readonly retrySafe: boolean
  readonly mayHaveWritten: boolean
  readonly retryAfterSeconds: number

  /** @param kind An error of the API, or one of the application (`ServeOptions.errors`). */
  constructor(kind: ApiErrorCode | ErrorKind, message?: string, { retryAfterSeconds = 1 } = {}) {
    const { code, meaning, ...properties } =
      typeof kind === 'string' ? { code: kind, ...ownErrors[kind] } : kind
    super(message ?? meaning)
    this.code = code
    this.statusCode = properties.statusCode
    this.retrySafe = properties.retrySafe
    this.mayHaveWritten = properties.mayHaveWritten
    this.retryAfterSeconds = retryAfterSeconds
  }
}

/** For errors of Fastify and its plugins. */
const codeOfStatus: Partial<Record<number, ApiErrorCode>> = {
  403: 'API_FORBIDDEN',
  404: 'API_NOT_FOUND',
  408: 'API_REQUEST_TIMEOUT',
  413: 'API_BODY_TOO_LARGE',
  414: 'API_URL_TOO_LONG',
  415: 'API_UNSUPPORTED_MEDIA_TYPE',
  429: 'API_TOO_MANY_REQUESTS',
  431: 'API_HEADERS_TOO_LARGE',
}

/**
 * Converts a client error (4xx) of Fastify or a plugin. A status that is not in the table becomes
 * `API_BAD_REQUEST`.
 *
 * @returns Undefined for any other status: the error is a server error.
 */
export function fromStatus(status: number, message?: string): ApiError | StoreError | undefined {
  if (status < 400 || status >= 500) return undefined
  if (status === 401) return new StoreError('ONETRIP_LOGIN_REQUIRED')
  // Fastify's message explains the error only for 400. Other messages may quote the request.
  const code = codeOfStatus[status] ?? 'API_BAD_REQUEST'
  return new ApiError(code, status === 400 ? message : undefined)
}
