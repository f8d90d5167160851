/**
 * Something that the user can put right: a taken port, a bad option, a stack that went away. Its
 * message is printed as it is, without a stack trace.
 */
export class Problem extends Error {
  override name = 'Problem'
}

/** A program that did not start, or that ended by itself; the message has its last lines. */
export class ProgramError extends Problem {
  override name = 'ProgramError'
}

/** The message of an error; anything else that was thrown, as text. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** What to print about an error: a problem's message, for anything else the stack. */
export function describeError(error: unknown): string {
  if (error instanceof Problem || !(error instanceof Error)) return messageOf(error)
  return error.stack ?? error.message
}
