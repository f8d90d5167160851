import { parseLocation, type RedisLocation, sentinel as toPrimary } from '@onetrip/cluster'
import { type RedisOptions, secretIn } from '@onetrip/session-store'
import type { Config } from './settings.ts'

export type { RedisLocation }

/** The single server, or the current primary. */
export const serverIn = ({ redis = {}, sentinel }: RedisLocation): RedisOptions =>
  sentinel ? toPrimary({ redis: sentinel }).redis : redis

export type Topology = 'single' | 'cluster' | 'sentinel'

/** One server, a cluster or sentinels, as the scheme of `REDIS_URL` says. */
export const topologyOf = (url: string): Topology =>
  (/^rediss?\+(cluster|sentinel):/.exec(url)?.[1] as Topology | undefined) ?? 'single'

/** Transport of the connections: `tcp`, `tls` or `unix`. */
export const transportOf = (url: string): string =>
  url.startsWith('unix:') ? 'unix' : url.startsWith('rediss') ? 'tls' : 'tcp'

const tlsFiles = {
  ca: 'REDIS_TLS_CA_FILE',
  cert: 'REDIS_TLS_CERT_FILE',
  key: 'REDIS_TLS_KEY_FILE',
} as const

/**
 * Address of Redis as configured. Reads the files of certificates and of the sentinels' password.
 *
 * @param config From `loadConfig`: the URL contains the password.
 * @throws Error that names the invalid setting.
 */
export function redisLocation(config: Config): RedisLocation {
  const { REDIS_URL, REDIS_TLS_SERVER_NAME: servername, REDIS_SENTINEL_PASSWORD_FILE } = config
  const files = Object.entries(tlsFiles).filter(([, setting]) => config[setting] !== '')
  const tls = {
    ...Object.fromEntries(
      files.map(([name, setting]) => [name, secretIn(setting, config[setting])]),
    ),
    ...(servername !== '' && { servername }),
  }
  const hasTls = Object.keys(tls).length > 0
  const sentinelPassword =
    REDIS_SENTINEL_PASSWORD_FILE === '' || topologyOf(REDIS_URL) !== 'sentinel'
      ? undefined
      : secretIn('REDIS_SENTINEL_PASSWORD_FILE', REDIS_SENTINEL_PASSWORD_FILE)
  try {
    return parseLocation(REDIS_URL, { tls: hasTls ? tls : undefined, sentinelPassword })
  } catch (error) {
    throw new Error(`REDIS_URL${hasTls ? ' and REDIS_TLS_…' : ''}: ${(error as Error).message}`)
  }
}
