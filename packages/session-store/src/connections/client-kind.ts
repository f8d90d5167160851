import type { Cluster, Redis } from 'ioredis'

/** The ioredis that the store is tested with, as in the peerDependencies of package.json. */
const SUPPORTED = 'ioredis 5 (from 5.11) or 6'

/**
 * Refuses what is no client of a supported ioredis: other libraries have the same methods and behave
 * differently.
 *
 * @throws TypeError that says what was given and what to give instead.
 */
export function checkKind(client: unknown): asserts client is Redis | Cluster {
  const wrong = whatIsWrong(client)
  if (wrong) throw new TypeError(`client must be made by ${SUPPORTED}; ${wrong}`)
}

function whatIsWrong(client: unknown): string | undefined {
  if (typeof client === 'string' || client instanceof URL) {
    return 'this is a URL: give it as url'
  }
  if (typeof client === 'function') return 'this is a class or function: give an instance'
  const given = (client ?? {}) as Record<string, unknown>
  if (typeof given.then === 'function') return 'this is a promise: await it first'
  if (given.isPipeline === true) return 'this is a pipeline: give the client that it came from'
  if (typeof given.call !== 'function') {
    return typeof given.sendCommand === 'function' && typeof given.multi === 'function'
      ? 'this is a client of node-redis: use sender: nodeRedisSender(client)'
      : 'this is something else: use url, or a sender of your own'
  }
  // Options that ioredis has a default for since 5.10: older versions and iovalkey, which began as a
  // copy of one, have none.
  const newest = given.isCluster === true ? 'clusterNodeRetryStrategy' : 'blockingTimeoutGrace'
  const options = given.options
  if (typeof options === 'object' && options !== null && newest in options) return undefined
  return 'this is an older ioredis, or a library that is derived from one, such as iovalkey: install ioredis 6, or use url'
}
