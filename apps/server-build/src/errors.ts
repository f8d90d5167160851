export type RedisBuildErrorCode =
  | 'USAGE'
  | 'SOURCE_REFUSED'
  | 'SOURCE_UNAVAILABLE'
  | 'TOOLS_MISSING'
  | 'PATCH_REJECTED'
  | 'COMPILE_FAILED'
  | 'BUILD_BROKEN'
  | 'BUSY'
  | 'SERVER_UNUSABLE'

/** Something that its reader can act on: the command line prints the message, without a stack. */
export class RedisBuildError extends Error {
  override name = 'RedisBuildError'
  readonly code: RedisBuildErrorCode

  constructor(code: RedisBuildErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
