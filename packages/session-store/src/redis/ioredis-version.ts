import manifest from 'ioredis/package.json' with { type: 'json' }

/** The versions of ioredis with which all tests of this package pass with frames (.ci/newest-ioredis). */
const verified = ['5.11.1', '6.0.0']

/** Why frames are not used with the version of ioredis that this package imports; undefined if they are. */
export const whyUnverified = verified.includes(manifest.version)
  ? undefined
  : `ioredis ${manifest.version} is installed, and frames are verified with ${verified.join(', ')} only. Install ioredis@${verifiedOf(manifest.version)}, or a newer version of this package`

/** The newest verified version with the same major version. */
function verifiedOf(version: string): string | undefined {
  const major = version.slice(0, version.indexOf('.') + 1)
  return verified.findLast((other) => other.startsWith(major)) ?? verified.at(-1)
}

/** Whether this package imports ioredis 5. */
export const isIoredis5 = manifest.version.startsWith('5.')

/** Whether a client with these options is one of ioredis 5: `replyMapping` is new in ioredis 6. */
export const isOfIoredis5 = (options: object): boolean => !('replyMapping' in options)
