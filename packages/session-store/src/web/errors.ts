import { STATUS_CODES } from 'node:http'
import { StoreError, storeErrors } from '../errors.ts'

const table = {
  ONETRIP_LOGIN_REQUIRED: { statusCode: 401, message: 'this needs a token: log in first' },
  ONETRIP_CROSS_SITE: { statusCode: 403, message: 'this comes from a page of another origin' },
  ONETRIP_SEVERAL_COOKIES: { statusCode: 400, message: 'there is more than one session cookie' },
} as const

export type SessionRequestErrorCode = keyof typeof table

/** A request that was refused before the store was asked. Its message can go to the client. */
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

/** An error with what a client needs to know: the store's, the one above, or an application's own. */
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
  /** From 500 on: the same request may be sent again without counting anything twice. */
  retrySafe?: boolean
}

export const isSessionError = (error: unknown): error is StoreError | SessionRequestError =>
  error instanceof StoreError || error instanceof SessionRequestError

/**
 * The body for this error. From 500 on it says nothing of the cause, which can name Redis's commands.
 *
 * @param statusCode Default: that of the error.
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
