/** The message of an error and, in parentheses, that of its cause. A cause of Node may have only a code. */
export function messageWithCause(error: unknown): string {
  const { message, cause } = error as Error
  if (!(cause instanceof Error)) return message
  return `${message} (${cause.message || (cause as { code?: string }).code})`
}
