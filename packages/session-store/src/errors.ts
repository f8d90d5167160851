interface ErrorKind {
  readonly statusCode: number
  readonly retrySafe: boolean
  readonly mayHaveWritten: boolean
  readonly meaning: string
}

/** An error of the caller: nothing was written, and a retry fails the same way. */
const refused = (statusCode: number, meaning: string): ErrorKind => ({
  statusCode,
  retrySafe: false,
  mayHaveWritten: false,
  meaning,
})

const notSent = (meaning: string): ErrorKind => ({ ...refused(503, meaning), retrySafe: true })

const sent = (meaning: string): ErrorKind => ({ ...refused(503, meaning), mayHaveWritten: true })

/**
 * All errors of the store and of its plugins for Fastify and Express.
 *
 * `statusCode`: the HTTP status; Fastify and Express read it from the error.
 * `retrySafe`: a retry of the same call counts nothing twice.
 * `mayHaveWritten`: Redis may have executed a write of the failed call.
 * `meaning`: the message for clients of a web service; it does not reveal the cause.
 */
export const storeErrors = {
  ONETRIP_INVALID_INPUT: refused(400, 'invalid value'),
  /** The plugins throw this code and the two below. */
  ONETRIP_SEVERAL_COOKIES: refused(400, 'more than one session cookie; the response removes them'),
  ONETRIP_LOGIN_REQUIRED: refused(401, 'login required: send a session token'),
  ONETRIP_CROSS_SITE: refused(403, 'cross-site request rejected (CSRF protection)'),
  ONETRIP_INVALID_TOKEN: refused(401, 'invalid token'),
  ONETRIP_EXPIRED_TOKEN: refused(401, 'the token has expired'),
  /**
   * The token is valid, but its session is gone. What the call wrote has been undone. Only `recordView` with an
   * idempotency key can have `mayHaveWritten`: a view of an earlier call with the key may still be counted.
   */
  ONETRIP_UNKNOWN_SESSION: refused(401, 'the session has ended'),
  ONETRIP_CONFLICT: refused(409, 'the session data has another version'),
  /** A mistake of the calling program, such as `login(42)`, not of its client. */
  ONETRIP_WRONG_TYPE: refused(500, 'an argument of a call has a wrong type'),
  /** Another program wrote the field. The message names it; a patch can remove or replace it. */
  ONETRIP_UNREADABLE_DATA: refused(500, 'a field of the session data is not JSON'),
  ONETRIP_NOT_SENT: notSent('no connection to Redis'),
  ONETRIP_OVERLOADED: notSent('too many requests in flight to Redis'),
  ONETRIP_OUTCOME_UNKNOWN: sent('sent to Redis, but the reply was lost or late'),
  /** With the option `durable`. A repeated call waits again; it may find nothing left to end. */
  ONETRIP_NOT_DURABLE: {
    ...sent('ended, but not yet confirmed as durable; repeat the request'),
    retrySafe: true,
  },
  /** Redis replied to a command with an error. */
  ONETRIP_REFUSED: sent('Redis returned an error'),
}

export type StoreErrorCode = keyof typeof storeErrors

interface Details {
  /** Overrides the table: false if the call is known to have written nothing, such as a read. */
  mayHaveWritten?: boolean
  /** Overrides the table: true if a retry counts nothing twice. */
  retrySafe?: boolean
  /** See `StoreError`. */
  setCookies?: readonly string[]
  cause?: unknown
}

/** All that is copied of a cause. Clients attach commands to their errors, and errors with commands. */
const KEPT = ['name', 'message', 'stack', 'code', 'cause', 'errors']

/**
 * A copy of an error, of its causes and of the members of an AggregateError, without the arguments of commands: they
 * contain session ids, users, items, session data and, in AUTH, a password. The application may use the original.
 */
function withoutArguments(value: unknown, copies = new Map<unknown, Error>()): unknown {
  if (!(value instanceof Error) || value instanceof StoreError) return value
  const known = copies.get(value)
  if (known) return known
  const copy = Object.setPrototypeOf(new Error(), Object.getPrototypeOf(value))
  copies.set(value, copy)
  const clean = (part: unknown): unknown => {
    if (Array.isArray(part)) return part.map(clean)
    if (typeof part !== 'string') return withoutArguments(part, copies)
    return part.replaceAll(value.message, () => withoutQuoted(value.message))
  }
  for (const key of KEPT) {
    if (!Object.hasOwn(value, key)) continue
    const part = { value: clean(Reflect.get(value, key)), enumerable: key === 'code' }
    Object.defineProperty(copy, key, { ...part, writable: true, configurable: true })
  }
  return copy
}

const withoutQuoted = (message: string) => message.split(QUOTED_ARGUMENTS, 1)[0] ?? ''

/** The part of Redis's error for an unknown command that quotes its arguments. */
const QUOTED_ARGUMENTS = ', with args beginning with'

/**
 * The error class of the store and its plugins. The message contains no token and no value that was sent; the
 * cause is a copy that contains no arguments of commands.
 */
export class StoreError extends Error {
  override name = 'StoreError'
  readonly code: StoreErrorCode
  /** 400, 401, 403, 409, 500 or 503. */
  readonly statusCode: number
  readonly mayHaveWritten: boolean
  readonly retrySafe: boolean
  /** `ONETRIP_SEVERAL_COOKIES`: the `Set-Cookie` headers that remove the cookies. `errorHeaders` has them. */
  declare readonly setCookies?: readonly string[]

  /** @param message Default: the `meaning` of the code. */
  constructor(
    code: StoreErrorCode,
    message: string = storeErrors[code].meaning,
    details: Details = {},
  ) {
    const { cause } = details
    super(message, cause === undefined ? undefined : { cause: withoutArguments(cause) })
    const { statusCode, retrySafe, mayHaveWritten } = storeErrors[code]
    this.code = code
    this.statusCode = statusCode
    this.mayHaveWritten = details.mayHaveWritten ?? mayHaveWritten
    if (details.setCookies) this.setCookies = details.setCookies
    // A retry is safe if nothing was written, except where it would fail the same way.
    this.retrySafe = details.retrySafe ?? (retrySafe || (mayHaveWritten && !this.mayHaveWritten))
  }
}

/** @throws StoreError `ONETRIP_UNKNOWN_SESSION` if no session was found (undefined). */
export function requireSession<Found>(found: Found | undefined): Found {
  if (found === undefined) {
    throw new StoreError('ONETRIP_UNKNOWN_SESSION', 'the session does not exist or has ended')
  }
  return found
}

/**
 * Converts the error of an idempotent operation: if its outcome is unknown, or Redis refused one of its commands, a
 * retry is safe. Returns any other error unchanged.
 */
export function repeatable(error: unknown): unknown {
  if (!(error instanceof StoreError) || !SENT.includes(error.code)) return error
  const { code, message, mayHaveWritten, cause } = error
  return new StoreError(code, message, { mayHaveWritten, cause, retrySafe: true })
}

const SENT: readonly StoreErrorCode[] = ['ONETRIP_OUTCOME_UNKNOWN', 'ONETRIP_REFUSED']
