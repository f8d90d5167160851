interface ErrorKind {
  readonly statusCode: number
  readonly retrySafe: boolean
  readonly mayHaveWritten: boolean
  readonly meaning: string
}

/** The caller's mistake, or what it lacks: nothing was written, and the same call fails the same way. */
const refused = (statusCode: number, meaning: string): ErrorKind => ({
  statusCode,
  retrySafe: false,
  mayHaveWritten: false,
  meaning,
})

const notSent = (meaning: string): ErrorKind => ({ ...refused(503, meaning), retrySafe: true })

const sent = (meaning: string): ErrorKind => ({ ...refused(503, meaning), mayHaveWritten: true })

/**
 * The one table of the store's errors.
 *
 * `statusCode`: what a web service answers with; Fastify and Express take it from the error.
 * `retrySafe`: the same call may be made again without counting anything twice.
 * `mayHaveWritten`: Redis may have executed a write of the failed call.
 * `meaning`: for clients of the service; it says nothing of the cause.
 */
export const storeErrors = {
  ONETRIP_INVALID_INPUT: refused(400, 'a value is not allowed'),
  ONETRIP_INVALID_TOKEN: refused(401, 'the token is not genuine'),
  ONETRIP_EXPIRED_TOKEN: refused(401, 'the token has expired'),
  /** A genuine token whose session is gone; whatever the call wrote has been undone. */
  ONETRIP_UNKNOWN_SESSION: refused(401, 'the session has ended'),
  ONETRIP_CONFLICT: refused(409, 'the data of the session has another version'),
  /** Another program wrote it. The message names the field; a patch can remove or replace it. */
  ONETRIP_UNREADABLE_DATA: refused(500, 'a field of the session data is not JSON'),
  ONETRIP_NOT_SENT: notSent('there is no connection to Redis'),
  ONETRIP_OVERLOADED: notSent('too much is in flight to Redis'),
  ONETRIP_OUTCOME_UNKNOWN: sent('sent to Redis, but its reply was lost or late'),
  /** Redis answered a command with an error. */
  ONETRIP_REFUSED: sent('Redis refused it'),
}

export type StoreErrorCode = keyof typeof storeErrors

interface Details {
  /** Overrides the table where the call is known to have written nothing, as a call that only reads. */
  mayHaveWritten?: boolean
  /** Overrides the table where a repetition counts nothing twice. */
  retrySafe?: boolean
  cause?: unknown
}

/**
 * Removes the arguments of commands from a client's error and from the errors inside it: they name sessions,
 * users and items, hold session data and, of AUTH, a password. Changes the object itself, which keeps its
 * class.
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

/** How Redis goes on after the name of an unknown command. */
const QUOTED_ARGUMENTS = ', with args beginning with'

/**
 * What the store throws. Its message names no token and no value that was sent, and its cause has no
 * arguments of commands.
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
