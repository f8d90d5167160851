import { type StoreErrorCode, storeErrors } from '@onetrip/session-store'
import type { SessionRequestError, SessionRequestErrorCode } from '@onetrip/session-store/fastify'

interface ErrorKind {
  readonly statusCode: number
  /** The same request may be sent again without counting anything twice. */
  readonly retrySafe: boolean
  /** Redis may have executed a write of the failed request. */
  readonly mayHaveWritten: boolean
  /** What to tell a client that was told nothing more precise. */
  readonly meaning: string
}

/** A client's mistake, or what it lacks: nothing was written, and the same again fails the same way. */
const refused = (statusCode: number, meaning: string): ErrorKind => ({
  statusCode,
  retrySafe: false,
  mayHaveWritten: false,
  meaning,
})

/** Nothing was written, and a later try may succeed. */
const later = (statusCode: number, meaning: string): ErrorKind => ({
  ...refused(statusCode, meaning),
  retrySafe: true,
})

const ownErrors = {
  API_BAD_REQUEST: refused(400, 'the request cannot be understood'),
  API_LOGIN_FIRST: refused(401, 'this needs a token: log in first'),
  API_WRONG_CREDENTIALS: refused(401, 'wrong user or password'),
  API_CROSS_SITE: refused(403, 'this comes from a page of another origin'),
  API_FORBIDDEN: refused(403, 'this is not allowed'),
  API_NOT_FOUND: refused(404, 'not found'),
  API_NO_RACE: refused(404, 'there is no race here'),
  API_METHOD_NOT_ALLOWED: refused(405, 'this path has no such method'),
  API_SOLD_OUT: refused(409, 'sold out: no piece of this item is left'),
  API_REQUEST_TIMEOUT: later(408, 'the request took too long to arrive'),
  API_RACE_RUNNING: later(409, 'a race is running: wait for its end'),
  API_BODY_TOO_LARGE: refused(413, 'the body is too large'),
  API_URL_TOO_LONG: refused(414, 'a part of the path is too long'),
  API_UNSUPPORTED_MEDIA_TYPE: refused(415, 'the body must be application/json'),
  API_TOO_MANY_REQUESTS: later(429, 'too many requests: wait as long as Retry-After says'),
  API_HEADERS_TOO_LARGE: refused(431, 'the headers are too large'),
  API_INTERNAL: {
    statusCode: 500,
    retrySafe: false,
    mayHaveWritten: true,
    meaning: 'something went wrong here; it has been logged',
  },
  API_DEMO_FAILED: later(503, 'the demo service failed or does not answer'),
  API_OVERLOADED: later(503, 'too busy: nothing was done'),
  API_STOPPING: later(503, 'this process is stopping: send the request to another one'),
} satisfies Record<string, ErrorKind>

export type ApiErrorCode = keyof typeof ownErrors

/** Every error that the API answers with, by its code. */
export const errorTable: Readonly<Record<StoreErrorCode | ApiErrorCode, ErrorKind>> = {
  ...ownErrors,
  ...storeErrors,
  // Only a request with If-Match can get it, and 412 is what RFC 9110 says for those.
  ONETRIP_CONFLICT: refused(412, 'the data does not have the version of If-Match'),
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
    return errorTable[this.code].statusCode
  }
}

const codeOfRequest: Record<SessionRequestErrorCode, ApiErrorCode> = {
  ONETRIP_LOGIN_REQUIRED: 'API_LOGIN_FIRST',
  ONETRIP_CROSS_SITE: 'API_CROSS_SITE',
  ONETRIP_SEVERAL_COOKIES: 'API_BAD_REQUEST',
}

/** An error of the session plugin as one of ours. */
export const fromSession = ({ code, message }: SessionRequestError) =>
  new ApiError(codeOfRequest[code], message)

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
