import { ProgramError } from './program.ts'

/**
 * Something that the user can put right: a taken port, a bad option, a stack that went away. Its
 * message is printed as it is, without a stack trace.
 */
export class Problem extends Error {
  override name = 'Problem'
}

/** What to print about an error: the bare message where that says it all, else with its stack. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error instanceof Problem || error instanceof ProgramError) return error.message
  return error.stack ?? error.message
}
