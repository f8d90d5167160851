import type { ConnectionOptions } from 'node:tls'
import {
  type ClusterAddress,
  checkLocation,
  parseRedisUrl,
  type ServerLocation,
} from '@onetrip/session-store'
import { type Config, DEFAULT_PARTITIONS, DEFAULT_REDIS_URL } from './config-schema.ts'
import { secretIn } from './secret-file.ts'

/** Address of Redis: exactly one of `url`, `cluster` and `sentinel` is set. */
export interface RedisLocation extends ServerLocation {
  cluster?: ClusterAddress | undefined
}

export type Topology = 'single' | 'cluster' | 'sentinel'

export const topologyOf = ({ cluster, sentinel }: RedisLocation): Topology =>
  cluster ? 'cluster' : sentinel ? 'sentinel' : 'single'

/** Transport of the connections: `tcp`, `tls` or `unix`. */
export function transportOf({ url, cluster, sentinel }: RedisLocation): string {
  if (url !== undefined) return parseRedisUrl(url).transport
  return (cluster ?? sentinel)?.tls ? 'tls' : 'tcp'
}

/**
 * `REDIS_URL` with the password of `REDIS_PASSWORD_FILE`, if that is set. Unchanged with a cluster or
 * sentinels, which do not use it.
 *
 * @throws Error that names the invalid setting.
 */
export function urlWithPassword(config: Config): string {
  const { REDIS_URL, REDIS_PASSWORD_FILE, REDIS_CLUSTER, REDIS_SENTINELS } = config
  if (REDIS_PASSWORD_FILE === '' || REDIS_CLUSTER !== '' || REDIS_SENTINELS !== '') return REDIS_URL
  const url = URL.parse(REDIS_URL)
  if (!url?.host || url.password) {
    throw new Error(
      'With REDIS_PASSWORD_FILE, REDIS_URL must name a host and contain no password: redis://user@host:6379 or unix://user@localhost/path/to/socket',
    )
  }
  url.password = encodeURIComponent(secretIn('REDIS_PASSWORD_FILE', REDIS_PASSWORD_FILE))
  return url.href
}

/**
 * Address of Redis as configured. Reads the password and certificate files.
 *
 * @param config From `loadConfig`: `REDIS_URL` contains the password.
 * @throws Error that names the settings that are invalid or have no effect.
 */
export function redisLocation(config: Config): RedisLocation {
  rejectWithoutEffect(config)
  const location = namedLocation(config)
  return checked(config, location, settingOf(config))
}

/**
 * Target of a migration (`REDIS_MIGRATE_TO`): a cluster with the user, password and TLS of `REDIS_URL`, or a
 * URL, which contains its own. Undefined without `REDIS_MIGRATE_TO`.
 *
 * @param config As for `redisLocation`.
 * @throws Error as for `redisLocation`.
 */
export function migrationTarget(config: Config): RedisLocation | undefined {
  const { REDIS_MIGRATE_TO: to, REDIS_URL } = config
  if (to === '') return undefined
  const tls = tlsOptions(config)
  if (to.includes('://')) {
    // The REDIS_TLS_… settings may be for REDIS_URL alone.
    const location = { url: to, tls: URL.parse(to)?.protocol === 'rediss:' ? tls : undefined }
    return checked(config, location, 'REDIS_MIGRATE_TO')
  }
  const { transport, options } = parseRedisUrl(REDIS_URL)
  const { username, password } = options
  const login = { username, password, tls: transport === 'tls' && (tls ?? true) }
  return checked(config, { cluster: { nodes: listed(to), ...login } }, 'REDIS_MIGRATE_TO')
}

function checked(config: Config, location: RedisLocation, setting: string): RedisLocation {
  try {
    checkLocation(location)
  } catch (error) {
    const tls = hasTlsOptions(config) ? ' and REDIS_TLS_…' : ''
    throw new Error(`${setting}${tls}: ${(error as Error).message}`)
  }
  return location
}

/** The setting with the address of Redis. */
function settingOf({ REDIS_CLUSTER, REDIS_SENTINELS }: Config): keyof Config {
  if (REDIS_CLUSTER !== '') return 'REDIS_CLUSTER'
  return REDIS_SENTINELS === '' ? 'REDIS_URL' : 'REDIS_SENTINELS'
}

function namedLocation(config: Config): RedisLocation {
  const { REDIS_URL, REDIS_CLUSTER, REDIS_SENTINELS, REDIS_SENTINEL_NAME } = config
  const tls = tlsOptions(config)
  if (REDIS_CLUSTER === '' && REDIS_SENTINELS === '') return { url: REDIS_URL, tls }
  const login = {
    username: config.REDIS_USERNAME || undefined,
    password: secretOf(config, 'REDIS_PASSWORD_FILE'),
    tls: config.REDIS_TLS && (tls ?? true),
  }
  if (REDIS_CLUSTER !== '') return { cluster: { nodes: listed(REDIS_CLUSTER), ...login } }
  return {
    sentinel: {
      nodes: listed(REDIS_SENTINELS),
      name: REDIS_SENTINEL_NAME,
      ...login,
      sentinelUsername: config.REDIS_SENTINEL_USERNAME || undefined,
      sentinelPassword: secretOf(config, 'REDIS_SENTINEL_PASSWORD_FILE'),
    },
  }
}

const listed = (nodes: string) => nodes.split(',').map((node) => node.trim())

const secretOf = (
  config: Config,
  setting: 'REDIS_PASSWORD_FILE' | 'REDIS_SENTINEL_PASSWORD_FILE',
): string | undefined => (config[setting] === '' ? undefined : secretIn(setting, config[setting]))

const tlsFiles = {
  ca: 'REDIS_TLS_CA_FILE',
  cert: 'REDIS_TLS_CERT_FILE',
  key: 'REDIS_TLS_KEY_FILE',
} as const

const hasTlsOptions = (config: Config): boolean =>
  [...Object.values(tlsFiles), 'REDIS_TLS_SERVER_NAME' as const].some((name) => config[name] !== '')

/** Undefined if no REDIS_TLS_… option is set. */
function tlsOptions(config: Config): ConnectionOptions | undefined {
  if (!hasTlsOptions(config)) return undefined
  const tls: ConnectionOptions = {}
  for (const [name, setting] of Object.entries(tlsFiles)) {
    const path = config[setting]
    if (path !== '') Object.assign(tls, { [name]: secretIn(setting, path) })
  }
  if (config.REDIS_TLS_SERVER_NAME !== '') tls.servername = config.REDIS_TLS_SERVER_NAME
  return tls
}

/** @throws Error if a setting has no effect because of another one. */
function rejectWithoutEffect(config: Config): void {
  const hasCluster = config.REDIS_CLUSTER !== ''
  const hasSentinels = config.REDIS_SENTINELS !== ''
  const set = [
    ...(config.REDIS_URL === DEFAULT_REDIS_URL ? [] : ['REDIS_URL']),
    ...(hasCluster ? ['REDIS_CLUSTER'] : []),
    ...(hasSentinels ? ['REDIS_SENTINELS'] : []),
  ]
  const rejectIf: RejectIf = (condition, message) => {
    if (condition) throw new Error(message)
  }
  const needs = (setting: keyof Config, other: string) =>
    rejectIf(config[setting] !== '', `${setting} has no effect without ${other}`)

  rejectIf(set.length > 1, `${set.slice(0, 2).join(' and ')} are both set; unset one`)
  if (hasSentinels) {
    rejectIf(config.REDIS_SENTINEL_NAME === '', 'REDIS_SENTINELS needs REDIS_SENTINEL_NAME')
    if (config.REDIS_SENTINEL_PASSWORD_FILE === '') {
      needs('REDIS_SENTINEL_USERNAME', 'REDIS_SENTINEL_PASSWORD_FILE')
    }
  } else {
    for (const setting of ['NAME', 'USERNAME', 'PASSWORD_FILE'] as const) {
      needs(`REDIS_SENTINEL_${setting}`, 'REDIS_SENTINELS')
    }
  }
  if (hasCluster || hasSentinels) {
    if (config.REDIS_PASSWORD_FILE === '') needs('REDIS_USERNAME', 'REDIS_PASSWORD_FILE')
    rejectIf(
      hasTlsOptions(config) && !config.REDIS_TLS,
      'REDIS_TLS_CA_FILE, REDIS_TLS_CERT_FILE, REDIS_TLS_KEY_FILE and REDIS_TLS_SERVER_NAME need REDIS_TLS=true',
    )
  } else {
    rejectIf(
      config.REDIS_USERNAME !== '',
      'REDIS_USERNAME has no effect with REDIS_URL; write redis://user@host:6379',
    )
    rejectIf(config.REDIS_TLS, 'REDIS_TLS has no effect with REDIS_URL; write rediss://host:6379')
  }
  if (hasCluster) rejectStrategy(config, 'REDIS_CLUSTER', rejectIf)
  if (config.REDIS_MIGRATE_TO !== '') {
    const [other = 'REDIS_URL'] = set
    rejectIf(
      other !== 'REDIS_URL',
      `REDIS_MIGRATE_TO and ${other} are both set, but only the single Redis of REDIS_URL can be migrated; unset one`,
    )
    rejectStrategy(config, 'REDIS_MIGRATE_TO', rejectIf)
  }
  rejectIf(
    (config.REDIS_MIGRATE_TO === '') !== (config.REDIS_MIGRATE_HOME === ''),
    'Set both REDIS_MIGRATE_TO and REDIS_MIGRATE_HOME, or neither',
  )
  rejectIf(
    !hasCluster && config.REDIS_MIGRATE_TO === '' && config.REDIS_PARTITIONS !== DEFAULT_PARTITIONS,
    'REDIS_PARTITIONS has no effect without REDIS_CLUSTER or REDIS_MIGRATE_TO',
  )
}

type RejectIf = (condition: boolean, message: string) => void

function rejectStrategy({ STRATEGY }: Config, setting: string, rejectIf: RejectIf): void {
  rejectIf(
    ['transaction', 'script'].includes(STRATEGY),
    `STRATEGY=${STRATEGY} needs all keys on one server; with ${setting} use batch or pipeline`,
  )
}
