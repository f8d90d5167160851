import { STATUS_CODES } from 'node:http'
import { StoreError, type StoreErrorCode } from '@onetrip/session-store'

interface ErrorKind {
  readonly status: number
  /** The same request may be sent again without counting anything twice. */
  readonly retrySafe: boolean
  /** Redis may have executed a write of the failed request. */
  readonly mayHaveWritten: boolean
  /** What to tell a client that was told nothing more precise. */
  readonly meaning: string
}

/** A client's mistake, or what it lacks: nothing was written, and the same again fails the same way. */
const refused = (status: number, meaning: string): ErrorKind => ({
  status,
  retrySafe: false,
  mayHaveWritten: false,
  meaning,
})

/** Nothing was written, and a later try may succeed. */
const later = (status: number, meaning: string): ErrorKind => ({
  ...refused(status, meaning),
  retrySafe: true,
})

/** The store says the rest itself. */
const ofStore = (code: StoreErrorCode, meaning: string): ErrorKind => {
  const { statusCode, retrySafe, mayHaveWritten } = new StoreError(code, meaning)
  return { status: statusCode, retrySafe, mayHaveWritten, meaning }
}

const storeErrors: Record<StoreErrorCode, ErrorKind> = {
  ONETRIP_INVALID_INPUT: ofStore('ONETRIP_INVALID_INPUT', 'a value is not allowed'),
  ONETRIP_INVALID_TOKEN: ofStore('ONETRIP_INVALID_TOKEN', 'the token is not genuine'),
  ONETRIP_EXPIRED_TOKEN: ofStore('ONETRIP_EXPIRED_TOKEN', 'the token has expired'),
  ONETRIP_UNKNOWN_SESSION: ofStore('ONETRIP_UNKNOWN_SESSION', 'the session has ended'),
  // Only a request with If-Match can get it, and 412 is what RFC 9110 says for those.
  ONETRIP_CONFLICT: {
    ...ofStore('ONETRIP_CONFLICT', 'the data does not have the version of If-Match'),
    status: 412,
  },
  ONETRIP_NOT_SENT: ofStore('ONETRIP_NOT_SENT', 'there is no connection to Redis'),
  ONETRIP_OVERLOADED: ofStore('ONETRIP_OVERLOADED', 'too much is in flight to Redis'),
  ONETRIP_OUTCOME_UNKNOWN: ofStore(
    'ONETRIP_OUTCOME_UNKNOWN',
    'sent to Redis, but its reply was lost or late',
  ),
  ONETRIP_REFUSED: ofStore('ONETRIP_REFUSED', 'Redis refused it'),
}

const ownErrors = {
  API_BAD_REQUEST: refused(400, 'the request cannot be understood'),
  API_LOGIN_FIRST: refused(401, 'this needs a token: log in first'),
  API_WRONG_CREDENTIALS: refused(401, 'these credentials prove nobody'),
  API_CROSS_SITE: refused(403, 'this comes from a page of another origin'),
  API_FORBIDDEN: refused(403, 'this is not allowed'),
  API_NOT_FOUND: refused(404, 'not found'),
  API_METHOD_NOT_ALLOWED: refused(405, 'this path has no such method'),
  API_REQUEST_TIMEOUT: later(408, 'the request took too long to arrive'),
  API_BODY_TOO_LARGE: refused(413, 'the body is too large'),
  API_URL_TOO_LONG: refused(414, 'a part of the path is too long'),
  API_UNSUPPORTED_MEDIA_TYPE: refused(415, 'the body must be application/json'),
  API_TOO_MANY_REQUESTS: later(429, 'too many requests: wait as long as Retry-After says'),
  API_HEADERS_TOO_LARGE: refused(431, 'the headers are too large'),
  API_INTERNAL: {
    status: 500,
    retrySafe: false,
    mayHaveWritten: true,
    meaning: 'something went wrong here; it has been logged',
  },
  API_OVERLOADED: later(503, 'too busy: nothing was done'),
  API_STOPPING: later(503, 'this process is about to stop: ask another one'),
} satisfies Record<string, ErrorKind>

export type ApiErrorCode = keyof typeof ownErrors

/** Every error that the API answers with, by its code. */
export const errorTable: Readonly<Record<StoreErrorCode | ApiErrorCode, ErrorKind>> = {
  ...ownErrors,
  ...storeErrors,
}

/** An error of the API's own. Its message goes to the client: no secret and no internals in it. */
export class ApiError extends Error {
  override name = 'ApiError'
  readonly code: ApiErrorCode
  readonly retrySafe: boolean
  readonly mayHaveWritten: boolean
  readonly retryAfterSeconds: number

  constructor(
    code: ApiErrorCode,
    message: string = errorTable[code].meaning,
    options: { retryAfterSeconds?: number } = {},
  ) {
    super(message)
    const { retrySafe, mayHaveWritten } = errorTable[code]
    this.code = code
    this.retrySafe = retrySafe
    this.mayHaveWritten = mayHaveWritten
    this.retryAfterSeconds = options.retryAfterSeconds ?? 1
  }

  get statusCode(): number {
    return errorTable[this.code].status
  }
}

/** What a client is told; the two flags only where it may have to try again. */
export interface ErrorBody {
  statusCode: number
  code: string
  error: string
  message: string
  mayHaveWritten?: boolean
  retrySafe?: boolean
}

/** The answer to this error: what a 5xx says of its cause is what the table says. */
export function errorBody(error: StoreError | ApiError): ErrorBody {
  const { code, message, mayHaveWritten, retrySafe } = error
  const { status, meaning } = errorTable[code]
  const body = { statusCode: status, code, error: STATUS_CODES[status] ?? '' }
  if (status < 500) return { ...body, message }
  return { ...body, message: meaning, mayHaveWritten, retrySafe }
}

/** For errors of Fastify and of plugins. Not here: codes that have one cause, as `API_CROSS_SITE`. */
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
 * An error of Fastify or of a plugin that is the client's fault, as one of ours. A status of 4xx that is
 * not in the table becomes `API_BAD_REQUEST`.
 *
 * @returns undefined for any other status: the error is a defect of the server.
 */
export function fromStatus(status: number, message?: string): ApiError | undefined {
  if (status < 400 || status >= 500) return undefined
  // Of a bad request Fastify's message says what is wrong; elsewhere it may repeat what was sent.
  const code = codeOfStatus[status] ?? 'API_BAD_REQUEST'
  return new ApiError(code, status === 400 ? message : undefined)
}
