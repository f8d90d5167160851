export type RedisBuildErrorCode =
  | 'USAGE'
  | 'SOURCE_REFUSED'
  | 'SOURCE_UNAVAILABLE'
  | 'TOOLS_MISSING'
  | 'PATCH_REJECTED'
  | 'COMPILE_FAILED'
  | 'BUILD_BROKEN'
  | 'HOME_NOT_WRITABLE'
  | 'LOCK_LOST'
  | 'SERVER_UNUSABLE'

/** An error that the user can fix. The command line prints its message without a stack. */
export class RedisBuildError extends Error {
  override name = 'RedisBuildError'
  readonly code: RedisBuildErrorCode

  constructor(code: RedisBuildErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** Whether the message suffices: an error that the user can fix, or of the file system, such as a read-only folder. */
export function isForUser(error: unknown): error is Error {
  return error instanceof RedisBuildError || (error instanceof Error && 'syscall' in error)
}
