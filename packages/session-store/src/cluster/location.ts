import type { ConnectionOptions } from 'node:tls'
import type { RedisOptions } from '../redis/client.ts'
import { parseRedisUrl } from '../redis/redis-url.ts'
import { type ClusterAddress, checkAddress, type SentinelAddress } from './address.ts'

/** Where Redis is: exactly one of `redis`, `cluster` and `sentinel` is set. */
export interface RedisLocation {
  /** A single server. */
  redis?: RedisOptions | undefined
  cluster?: ClusterAddress | undefined
  sentinel?: SentinelAddress | undefined
}

interface Details extends Pick<SentinelAddress, 'sentinelPassword'> {
  tls?: ConnectionOptions | undefined
}

const SEVERAL_HOSTS =
  /^(rediss?)\+(cluster|sentinel):\/\/(?:([^:@/]*)(?::([^:@/]*))?@)?([^@/]+)(?:\/([^/?]*)(?:\?sentinelUser=([^&]+))?)?$/

/**
 * Parses `redis+cluster://user:password@host:port,host:port` with some of the nodes,
 * `redis+sentinel://user:password@host:port,host:port/name` with the sentinels and the name of the primary
 * (`?sentinelUser=name`: a user of the sentinels), the same with `rediss+`, or a URL of `parseRedisUrl`.
 *
 * @throws TypeError if the URL or a detail is invalid. The message contains no password and no part of a key.
 */
export function parseLocation(url: string, details: Details = {}): RedisLocation {
  const { tls, sentinelPassword } = details
  if (!/^rediss?\+/.test(url)) return { redis: parseRedisUrl(url, tls).options }
  const [match, scheme, kind, user, password, hosts = '', name = '', sentinelUser] =
    SEVERAL_HOSTS.exec(url) ?? []
  if (!match || (kind === 'cluster' && name !== '')) throw invalid()
  if (tls && scheme === 'redis') {
    throw new TypeError(`tls needs a URL that begins with rediss+${kind}://`)
  }
  const server = {
    nodes: hosts.split(','),
    username: user && decoded(user),
    password: password && decoded(password),
    tls: scheme === 'rediss' && (tls ?? true),
  }
  const location =
    kind === 'cluster'
      ? { cluster: server }
      : {
          sentinel: {
            ...server,
            name: decoded(name),
            sentinelUsername: sentinelUser && decoded(sentinelUser),
            sentinelPassword,
          },
        }
  checkAddress(location)
  return location
}

const invalid = () =>
  new TypeError(
    'it must look like redis+cluster://user@host:port,host:port or redis+sentinel://user@host:port,host:port/name, with special characters of user name and password percent-encoded',
  )

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw invalid()
  }
}
