import { STATUS_CODES } from 'node:http'
import { StoreError, storeErrors } from '../errors.ts'

/** What a response tells the client about an error: a `StoreError`, or your own. */
export interface CodedError {
  readonly code: string
  readonly message: string
  readonly statusCode: number
  readonly retrySafe: boolean
  readonly mayHaveWritten: boolean
  /** For 429 and 503. Default 1. */
  readonly retryAfterSeconds?: number
  /** `Set-Cookie` headers. */
  readonly setCookies?: readonly string[]
}

/** Whether the error handlers of the plugins respond. The framework reports all other errors with their stack. */
export const isAnswerable = (error: unknown): error is StoreError =>
  error instanceof StoreError && error.code !== 'ONETRIP_WRONG_TYPE'

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

/**
 * The headers of the response to this error: `WWW-Authenticate` with 401, `Retry-After` with 429 and 503,
 * `Set-Cookie` if the error has `setCookies`. Add these to the cookies of the response: do not replace them.
 */
export function errorHeaders({ statusCode, retryAfterSeconds = 1, setCookies }: CodedError) {
  const headers: Record<string, string | string[]> = {}
  if (statusCode === 401) headers['www-authenticate'] = 'Bearer'
  if (statusCode === 429 || statusCode === 503) headers['retry-after'] = String(retryAfterSeconds)
  if (setCookies?.length) headers['set-cookie'] = [...setCookies]
  return headers
}
