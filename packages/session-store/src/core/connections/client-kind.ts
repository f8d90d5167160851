import type { Cluster, Redis } from 'ioredis'

/** The supported versions of ioredis, as in the peerDependencies of package.json. */
const SUPPORTED = 'ioredis 5 (from 5.11) or 6'

/**
 * Rejects anything but a client of a supported ioredis: other libraries have the same methods but behave
 * differently.
 *
 * @throws TypeError that names what was passed and what to pass instead.
 */
export function checkKind(client: unknown): asserts client is Redis | Cluster {
  const wrong = whatIsWrong(client)
  if (wrong) throw new TypeError(`client must be a client of ${SUPPORTED}; ${wrong}`)
}

function whatIsWrong(client: unknown): string | undefined {
  if (typeof client === 'string' || client instanceof URL) {
    return 'this is a URL: pass it as url'
  }
  if (typeof client === 'function') return 'this is a class or function: pass an instance'
  const given = (client ?? {}) as Record<string, unknown>
  if (typeof given.then === 'function') return 'this is a promise: await it first'
  if (given.isPipeline === true) return 'this is a pipeline: pass its client'
  if (typeof given.call !== 'function') {
    return typeof given.sendCommand === 'function' && typeof given.multi === 'function'
      ? 'this is a client of node-redis: use sender: nodeRedisSender(client)'
      : 'this is not a Redis client: use url, or a custom sender'
  }
  // These options exist since ioredis 5.10. Older versions do not have them, and neither does iovalkey, a fork.
  const newest = given.isCluster === true ? 'clusterNodeRetryStrategy' : 'blockingTimeoutGrace'
  const options = given.options
  if (typeof options === 'object' && options !== null && newest in options) return undefined
  return 'this is an older ioredis, or a library that is derived from one, such as iovalkey: install ioredis 6, or use url'
}
