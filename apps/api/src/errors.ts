import { type StoreError, type StoreErrorCode, storeErrors } from '@onetrip/session-store'

interface ErrorKind {
  readonly statusCode: number
  /** Whether a client can safely retry: nothing is counted twice. */
  readonly retrySafe: boolean
  /** Whether Redis may have executed a write of the failed request. */
  readonly mayHaveWritten: boolean
  /** Default message. */
  readonly meaning: string
}

/** Nothing was written; a retry fails in the same way. */
const rejected = (statusCode: number, meaning: string): ErrorKind => ({
  statusCode,
  retrySafe: false,
  mayHaveWritten: false,
  meaning,
})

/** Nothing was written; a retry may succeed. */
const retryable = (statusCode: number, meaning: string): ErrorKind => ({
  ...rejected(statusCode, meaning),
  retrySafe: true,
})

const ownErrors = {
  API_BAD_REQUEST: rejected(400, 'malformed request'),
  API_LOGIN_FIRST: rejected(401, 'login required: send a session token'),
  API_WRONG_CREDENTIALS: rejected(401, 'wrong user name or password'),
  API_CROSS_SITE: rejected(403, 'cross-site request rejected (CSRF protection)'),
  API_FORBIDDEN: rejected(403, 'not allowed'),
  API_NOT_FOUND: rejected(404, 'not found'),
  API_NO_RACE: rejected(404, 'the demo race is not available'),
  API_METHOD_NOT_ALLOWED: rejected(405, 'method not allowed'),
  API_SOLD_OUT: rejected(409, 'sold out'),
  API_REQUEST_TIMEOUT: retryable(408, 'the request was not received in time'),
  API_RACE_RUNNING: retryable(409, 'a race is running; retry when it has ended'),
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
  API_DEMO_FAILED: retryable(503, 'the demo service failed or does not answer'),
  API_OVERLOADED: retryable(503, 'overloaded; the request was not processed'),
  API_STOPPING: retryable(503, 'shutting down; retry on another instance'),
} satisfies Record<string, ErrorKind>

export type ApiErrorCode = keyof typeof ownErrors

/** The codes of the session plugin, and those of the API for them. */
const codesOfPlugin = {
  ONETRIP_LOGIN_REQUIRED: 'API_LOGIN_FIRST',
  ONETRIP_CROSS_SITE: 'API_CROSS_SITE',
  ONETRIP_SEVERAL_COOKIES: 'API_BAD_REQUEST',
} as const satisfies Partial<Record<StoreErrorCode, ApiErrorCode>>

type StoreCode = Exclude<StoreErrorCode, keyof typeof codesOfPlugin>

const { ONETRIP_LOGIN_REQUIRED, ONETRIP_CROSS_SITE, ONETRIP_SEVERAL_COOKIES, ...ofStore } =
  storeErrors

/** All errors of the API, by code. */
export const errorTable: Readonly<Record<StoreCode | ApiErrorCode, ErrorKind>> = {
  ...ownErrors,
  ...ofStore,
  // Only requests with If-Match cause it; for those RFC 9110 requires 412.
  ONETRIP_CONFLICT: rejected(412, 'the data has changed: its version is not that of If-Match'),
}

/** An error response. The client sees the message, so it must not contain secrets or internals. */
export class ApiError extends Error {
  override name = 'ApiError'
  readonly code: ApiErrorCode
  readonly retrySafe: boolean
  readonly mayHaveWritten: boolean
  readonly retryAfterSeconds: number
  /** `Set-Cookie` headers of the response. */
  readonly setCookies: readonly string[]

  constructor(
    code: ApiErrorCode,
    message: string = errorTable[code].meaning,
    options: { retryAfterSeconds?: number; setCookies?: readonly string[] | undefined } = {},
  ) {
    super(message)
    const { retrySafe, mayHaveWritten } = errorTable[code]
    this.code = code
    this.retrySafe = retrySafe
    this.mayHaveWritten = mayHaveWritten
    this.retryAfterSeconds = options.retryAfterSeconds ?? 1
    this.setCookies = options.setCookies ?? []
  }

  get statusCode(): number {
    return errorTable[this.code].statusCode
  }
}

/** Converts an error of the session plugin. Returns any other error of the store unchanged. */
export function fromStore(error: StoreError): ApiError | (StoreError & { code: StoreCode }) {
  const codes: Partial<Record<StoreErrorCode, ApiErrorCode>> = codesOfPlugin
  const code = codes[error.code]
  if (code === undefined) return error as StoreError & { code: StoreCode }
  return new ApiError(code, error.message, { setCookies: error.setCookies })
}

/**
 * For errors of Fastify and its plugins. Does not contain codes with one specific cause, such as
 * `API_CROSS_SITE`.
 */
const codeOfStatus: Partial<Record<number, ApiErrorCode>> = {
  401: 'API_LOGIN_FIRST',
  403: 'API_FORBIDDEN',
  404: 'API_NOT_FOUND',
  405: 'API_METHOD_NOT_ALLOWED',
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
export function fromStatus(status: number, message?: string): ApiError | undefined {
  if (status < 400 || status >= 500) return undefined
  // Fastify's message explains the error only for 400. Other messages may quote the request.
  const code = codeOfStatus[status] ?? 'API_BAD_REQUEST'
  return new ApiError(code, status === 400 ? message : undefined)
}
