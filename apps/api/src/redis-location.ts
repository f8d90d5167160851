import type { ConnectionOptions } from 'node:tls'
import { longLivedConnection } from '@onetrip/session-store'
import {
  parseLocation,
  type RedisLocation,
  sentinelConnection,
} from '@onetrip/session-store/cluster'
import type { Config } from './config-schema.ts'
import { secretIn } from './secret-file.ts'

export type { RedisLocation }

/** A connection to the single server or to the current primary (`longLivedConnection`). */
export const connectionTo = ({ redis = {}, sentinel }: RedisLocation, timeoutMs: number) =>
  sentinel ? sentinelConnection(sentinel, timeoutMs) : longLivedConnection(redis, timeoutMs)

export type Topology = 'single' | 'cluster' | 'sentinel'

export const topologyOf = ({ cluster, sentinel }: RedisLocation): Topology =>
  cluster ? 'cluster' : sentinel ? 'sentinel' : 'single'

/** Transport of the connections: `tcp`, `tls` or `unix`. */
export function transportOf({ redis, cluster, sentinel }: RedisLocation): string {
  if (redis?.path !== undefined) return 'unix'
  return (redis ?? cluster ?? sentinel)?.tls ? 'tls' : 'tcp'
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
  const { REDIS_SENTINEL_USERNAME, REDIS_SENTINEL_PASSWORD_FILE: file } = config
  // Without sentinels, `loadConfig` says that the file has no effect.
  const isRead = file !== '' && /^rediss?\+sentinel:/.test(config.REDIS_URL)
  const sentinelPassword = isRead ? secretIn('REDIS_SENTINEL_PASSWORD_FILE', file) : undefined
  const sentinelUsername = REDIS_SENTINEL_USERNAME || undefined
  try {
    return parseLocation(config.REDIS_URL, { tls, sentinelUsername, sentinelPassword })
  } catch (error) {
    throw new Error(`REDIS_URL${tls ? ' and REDIS_TLS_…' : ''}: ${(error as Error).message}`)
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
