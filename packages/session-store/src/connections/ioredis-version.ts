import manifest from 'ioredis/package.json' with { type: 'json' }

/** The versions of ioredis with which all tests of this package pass with frames. */
const verified = ['5.11.1', '6.0.0']

/** Whether frames are verified with the version of ioredis that this package imports. */
export const framesAreVerified = verified.includes(manifest.version)

/** Whether this package imports ioredis 5. */
export const isIoredis5 = manifest.version.startsWith('5.')

/** Whether a client with these options is one of ioredis 5: `replyMapping` is new in ioredis 6. */
export const isOfIoredis5 = (options: object): boolean => !('replyMapping' in options)
