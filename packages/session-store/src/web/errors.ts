import { STATUS_CODES } from 'node:http'
import { StoreError, storeErrors } from '../errors.ts'

const table = {
  ONETRIP_LOGIN_REQUIRED: { statusCode: 401, message: 'login required: send a session token' },
  ONETRIP_CROSS_SITE: { statusCode: 403, message: 'cross-site request rejected (CSRF protection)' },
  ONETRIP_SEVERAL_COOKIES: { statusCode: 400, message: 'more than one session cookie' },
} as const

export type SessionRequestErrorCode = keyof typeof table

/** A request that was rejected before the store was called. The message is safe to show to the client. */
export class SessionRequestError extends Error {
  override name = 'SessionRequestError'
  readonly code: SessionRequestErrorCode
  /** 400, 401 or 403. */
  readonly statusCode: number
  readonly retrySafe = false
  readonly mayHaveWritten = false

  constructor(code: SessionRequestErrorCode, message: string = table[code].message) {
    super(message)
    this.code = code
    this.statusCode = table[code].statusCode
  }
}

/** What a response tells the client about an error: a `StoreError`, a `SessionRequestError`, or your own. */
export interface CodedError {
  readonly code: string
  readonly message: string
  readonly statusCode: number
  readonly retrySafe: boolean
  readonly mayHaveWritten: boolean
  /** For 429 and 503. Default 1. */
  readonly retryAfterSeconds?: number
}

/** The body of the response to an error. */
export interface ErrorBody {
  statusCode: number
  code: string
  /** The name of the status. */
  error: string
  message: string
  /** From 500 on: Redis may have executed a write of this request. */
  mayHaveWritten?: boolean
  /** From 500 on: a retry of the same request counts nothing twice. */
  retrySafe?: boolean
}

export const isSessionError = (error: unknown): error is StoreError | SessionRequestError =>
  error instanceof StoreError || error instanceof SessionRequestError

/**
 * The body of the response to this error. From 500 on its message does not reveal the cause, which can name
 * commands of Redis.
 *
 * @param statusCode Default: the status of the error.
 */
export function errorBody(error: CodedError, statusCode = error.statusCode): ErrorBody {
  const { code, message, mayHaveWritten, retrySafe } = error
  const body = { statusCode, code, error: STATUS_CODES[statusCode] ?? '', message }
  if (statusCode < 500) return body
  if (error instanceof StoreError) body.message = storeErrors[error.code].meaning
  return { ...body, mayHaveWritten, retrySafe }
}

/** The headers of the response to this error: `WWW-Authenticate` with 401, `Retry-After` with 429 and 503. */
export function errorHeaders({ statusCode, retryAfterSeconds = 1 }: CodedError) {
  const headers: Record<string, string> = {}
  if (statusCode === 401) headers['www-authenticate'] = 'Bearer'
  if (statusCode === 429 || statusCode === 503) headers['retry-after'] = String(retryAfterSeconds)
  return headers
}
