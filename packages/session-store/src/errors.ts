/**
 * The one table of the store's errors.
 *
 * `statusCode`: what a web service answers with; Fastify and Express take it from the error.
 * `retrySafe`: the same call may be made again without counting anything twice.
 * `mayHaveWritten`: Redis may have executed a write of the failed call.
 */
const table = {
  ONETRIP_INVALID_INPUT: { statusCode: 400, retrySafe: false, mayHaveWritten: false },
  ONETRIP_INVALID_TOKEN: { statusCode: 401, retrySafe: false, mayHaveWritten: false },
  ONETRIP_EXPIRED_TOKEN: { statusCode: 401, retrySafe: false, mayHaveWritten: false },
  /** A genuine token whose session is gone; whatever the call wrote has been undone. */
  ONETRIP_UNKNOWN_SESSION: { statusCode: 401, retrySafe: false, mayHaveWritten: false },
  /** The session's data has another version than the call expects; nothing was written. */
  ONETRIP_CONFLICT: { statusCode: 409, retrySafe: false, mayHaveWritten: false },
  /** Not sent: there is no connection. */
  ONETRIP_NOT_SENT: { statusCode: 503, retrySafe: true, mayHaveWritten: false },
  /** Not sent: too much is in flight already. */
  ONETRIP_OVERLOADED: { statusCode: 503, retrySafe: true, mayHaveWritten: false },
  /** Sent, but the reply was lost or late. */
  ONETRIP_OUTCOME_UNKNOWN: { statusCode: 503, retrySafe: false, mayHaveWritten: true },
  /** Redis answered a command with an error. */
  ONETRIP_REFUSED: { statusCode: 503, retrySafe: false, mayHaveWritten: true },
} as const

export type StoreErrorCode = keyof typeof table

interface Details {
  /** Overrides the table where the call is known to have written nothing, as a call that only reads. */
  mayHaveWritten?: boolean
  /** Overrides the table where a repetition counts nothing twice. */
  retrySafe?: boolean
  cause?: unknown
}

/** What the store throws. Its message names no token and no value that was sent. */
export class StoreError extends Error {
  override name = 'StoreError'
  readonly code: StoreErrorCode
  /** 400, 401, 409 or 503. */
  readonly statusCode: number
  readonly mayHaveWritten: boolean
  readonly retrySafe: boolean

  constructor(code: StoreErrorCode, message: string, details: Details = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    const { statusCode, retrySafe, mayHaveWritten } = table[code]
    this.code = code
    this.statusCode = statusCode
    this.mayHaveWritten = details.mayHaveWritten ?? mayHaveWritten
    // A call that wrote nothing can be made again, unless repeating it can only fail the same way.
    this.retrySafe = details.retrySafe ?? (retrySafe || (mayHaveWritten && !this.mayHaveWritten))
  }
}

/** @throws StoreError `ONETRIP_UNKNOWN_SESSION` for undefined: no session was found. */
export function known<Found>(found: Found | undefined): Found {
  if (found === undefined) {
    throw new StoreError('ONETRIP_UNKNOWN_SESSION', 'there is no such session (any more)')
  }
  return found
}
