import manifest from 'ioredis/package.json' with { type: 'json' }

/** The versions of ioredis with which every test of this package passes with frames. */
const verified = ['5.11.1', '6.0.0']

/** Whether `sendFrame` was verified with the ioredis that this package imports. */
export const framesAreVerified = verified.includes(manifest.version)

/** The ioredis that this package imports is ioredis 5. */
export const isIoredis5 = manifest.version.startsWith('5.')

/** Whether a connection with these options is one of ioredis 5: the option is new in 6. */
export const isOfIoredis5 = (options: object): boolean => !('replyMapping' in options)
