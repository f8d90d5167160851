/** An error that the user can fix. Only its message is printed. */
export class Problem extends Error {
  override name = 'Problem'
}

/** The message of an error; any other thrown value as text. */
export const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error)
