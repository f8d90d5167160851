import type { ConnectionOptions } from 'node:tls'
import { longLivedConnection, parseRedisUrl, type ServerLocation } from '@onetrip/session-store'
import {
  type ClusterAddress,
  checkAddress,
  type SentinelAddress,
  sentinelConnection,
} from '@onetrip/session-store/cluster'
import type { Config } from './config-schema.ts'
import { secretIn } from './secret-file.ts'

/** Address of Redis: exactly one of `url`, `cluster` and `sentinel` is set. */
export interface RedisLocation extends ServerLocation {
  cluster?: ClusterAddress | undefined
  sentinel?: SentinelAddress | undefined
}

/** A connection to the single server or to the current primary (`longLivedConnection`). */
export const connectionTo = ({ url, tls, sentinel }: RedisLocation, timeoutMs: number) =>
  sentinel ? sentinelConnection(sentinel, timeoutMs) : longLivedConnection({ url, tls }, timeoutMs)

export type Topology = 'single' | 'cluster' | 'sentinel'

export const topologyOf = ({ cluster, sentinel }: RedisLocation): Topology =>
  cluster ? 'cluster' : sentinel ? 'sentinel' : 'single'

/** Transport of the connections: `tcp`, `tls` or `unix`. */
export function transportOf({ url, cluster, sentinel }: RedisLocation): string {
  if (url !== undefined) return parseRedisUrl(url).transport
  return (cluster ?? sentinel)?.tls ? 'tls' : 'tcp'
}

/** The beginning of a URL with a host and without a password: scheme and user. */
const BEFORE_HOST = /^([a-z+]+:\/\/)(?:([^:@/]*)@)?(?=[^@/][^@]*$)/

/**
 * `REDIS_URL` with the password of `REDIS_PASSWORD_FILE`, if that is set.
 *
 * @throws Error that names the invalid setting.
 */
export function urlWithPassword({ REDIS_URL, REDIS_PASSWORD_FILE }: Config): string {
  if (REDIS_PASSWORD_FILE === '') return REDIS_URL
  if (!BEFORE_HOST.test(REDIS_URL)) {
    throw new Error(
      'With REDIS_PASSWORD_FILE, REDIS_URL must name a host and contain no password: redis://user@host:6379 or unix://user@localhost/path/to/socket',
    )
  }
  const password = encodeURIComponent(secretIn('REDIS_PASSWORD_FILE', REDIS_PASSWORD_FILE))
  return REDIS_URL.replace(BEFORE_HOST, (_, scheme, user = '') => `${scheme}${user}:${password}@`)
}

/**
 * Address of Redis as configured. Reads the certificate files.
 *
 * @param config From `loadConfig`: the URL contains the password.
 * @throws Error that names the invalid setting.
 */
export function redisLocation(config: Config): RedisLocation {
  const tls = tlsOptions(config)
  try {
    const location = parsed(config, tls)
    checkAddress(location)
    if (location.url !== undefined) parseRedisUrl(location.url, location.tls)
    return location
  } catch (error) {
    throw new Error(`REDIS_URL${tls ? ' and REDIS_TLS_…' : ''}: ${(error as Error).message}`)
  }
}

const SEVERAL_HOSTS =
  /^(rediss?)\+(cluster|sentinel):\/\/(?:([^:@/]*)(?::([^:@/]*))?@)?([^@/]+)(?:\/([^/]*))?$/

function parsed(config: Config, tls: ConnectionOptions | undefined): RedisLocation {
  const { REDIS_URL: url } = config
  if (!/^rediss?\+/.test(url)) return { url, tls }
  const [match, scheme, kind, user, password, hosts = '', name = ''] = SEVERAL_HOSTS.exec(url) ?? []
  if (!match || (kind === 'cluster' && name !== '')) {
    throw new Error(
      'it must look like redis+cluster://user@host:port,host:port or redis+sentinel://user@host:port,host:port/name, with special characters of user name and password percent-encoded',
    )
  }
  if (tls && scheme === 'redis')
    throw new Error(`tls needs a URL that begins with rediss+${kind}://`)
  const server = {
    nodes: hosts.split(','),
    username: user && decodeURIComponent(user),
    password: password && decodeURIComponent(password),
    tls: scheme === 'rediss' && (tls ?? true),
  }
  if (kind === 'cluster') return { cluster: server }
  const { REDIS_SENTINEL_USERNAME, REDIS_SENTINEL_PASSWORD_FILE: file } = config
  return {
    sentinel: {
      ...server,
      name: decodeURIComponent(name),
      sentinelUsername: REDIS_SENTINEL_USERNAME || undefined,
      sentinelPassword: file === '' ? undefined : secretIn('REDIS_SENTINEL_PASSWORD_FILE', file),
    },
  }
}

const tlsFiles = {
  ca: 'REDIS_TLS_CA_FILE',
  cert: 'REDIS_TLS_CERT_FILE',
  key: 'REDIS_TLS_KEY_FILE',
} as const

/** Undefined if no REDIS_TLS_… option is set. */
function tlsOptions(config: Config): ConnectionOptions | undefined {
  const tls: ConnectionOptions = {}
  for (const [name, setting] of Object.entries(tlsFiles)) {
    const path = config[setting]
    if (path !== '') Object.assign(tls, { [name]: secretIn(setting, path) })
  }
  if (config.REDIS_TLS_SERVER_NAME !== '') tls.servername = config.REDIS_TLS_SERVER_NAME
  return Object.keys(tls).length > 0 ? tls : undefined
}
