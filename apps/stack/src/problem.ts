/**
 * An error that the user can fix, such as a port in use, an invalid option or a stopped stack. Only its message is
 * printed, without a stack trace.
 */
export class Problem extends Error {
  override name = 'Problem'
}

/** A program did not start, or exited unexpectedly. The message contains its last lines of output. */
export class ProgramError extends Problem {
  override name = 'ProgramError'
}

/** The message of an error; any other thrown value as text. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** The text to print for an error: the message of a Problem, the stack of any other error. */
export function describeError(error: unknown): string {
  if (error instanceof Problem || !(error instanceof Error)) return messageOf(error)
  return error.stack ?? error.message
}
