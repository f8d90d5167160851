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
 * All errors of the store.
 *
 * `statusCode`: the HTTP status; Fastify and Express read it from the error.
 * `retrySafe`: a retry of the same call counts nothing twice.
 * `mayHaveWritten`: Redis may have executed a write of the failed call.
 * `meaning`: the message for clients of a web service; it does not reveal the cause.
 */
export const storeErrors = {
  ONETRIP_INVALID_INPUT: refused(400, 'invalid value'),
  ONETRIP_INVALID_TOKEN: refused(401, 'invalid token'),
  ONETRIP_EXPIRED_TOKEN: refused(401, 'the token has expired'),
  /** The token is valid, but its session is gone. What the call wrote has been undone. */
  ONETRIP_UNKNOWN_SESSION: refused(401, 'the session has ended'),
  ONETRIP_CONFLICT: refused(409, 'the session data has another version'),
  /** Another program wrote the field. The message names it; a patch can remove or replace it. */
  ONETRIP_UNREADABLE_DATA: refused(500, 'a field of the session data is not JSON'),
  ONETRIP_NOT_SENT: notSent('no connection to Redis'),
  ONETRIP_OVERLOADED: notSent('too many requests in flight to Redis'),
  ONETRIP_OUTCOME_UNKNOWN: sent('sent to Redis, but the reply was lost or late'),
  /** Redis replied to a command with an error. */
  ONETRIP_REFUSED: sent('Redis returned an error'),
}

export type StoreErrorCode = keyof typeof storeErrors

interface Details {
  /** Overrides the table: false if the call is known to have written nothing, such as a read. */
  mayHaveWritten?: boolean
  /** Overrides the table: true if a retry counts nothing twice. */
  retrySafe?: boolean
  cause?: unknown
}

/**
 * Removes the arguments of commands from an error of a Redis client and from the errors inside it. Arguments
 * contain session ids, users, items, session data and, in AUTH, a password. Modifies the error in place, so
 * that it keeps its class.
 */
function removeArguments(error: unknown, seen = new Set<unknown>()): void {
  if (!(error instanceof Error) || seen.has(error)) return
  seen.add(error)
  const { command } = error as { command?: { name?: unknown; args?: unknown } }
  if (command?.args) Reflect.set(error, 'command', { name: command.name })
  const [message = '', quoted] = error.message.split(QUOTED_ARGUMENTS)
  if (quoted !== undefined) {
    const { stack } = error
    Reflect.set(
      error,
      'stack',
      stack?.replace(error.message, () => message),
    )
    Reflect.set(error, 'message', message)
  }
  for (const inner of [error.cause, ...Object.values(error)].flat()) removeArguments(inner, seen)
}

/** The part of Redis's error for an unknown command that quotes its arguments. */
const QUOTED_ARGUMENTS = ', with args beginning with'

/**
 * The error class of the store. The message contains no token and no value that was sent; the cause contains
 * no arguments of commands.
 */
export class StoreError extends Error {
  override name = 'StoreError'
  readonly code: StoreErrorCode
  /** 400, 401, 409, 500 or 503. */
  readonly statusCode: number
  readonly mayHaveWritten: boolean
  readonly retrySafe: boolean

  constructor(code: StoreErrorCode, message: string, details: Details = {}) {
    removeArguments(details.cause)
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    const { statusCode, retrySafe, mayHaveWritten } = storeErrors[code]
    this.code = code
    this.statusCode = statusCode
    this.mayHaveWritten = details.mayHaveWritten ?? mayHaveWritten
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
