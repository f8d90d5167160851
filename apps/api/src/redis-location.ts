import type { ConnectionOptions } from 'node:tls'
import {
  type ClusterAddress,
  checkLocation,
  parseRedisUrl,
  type ServerLocation,
} from '@onetrip/session-store'
import {
  type Config,
  DEFAULT_CACHE_ENTRIES,
  DEFAULT_PARTITIONS,
  DEFAULT_REDIS_URL,
} from './config-schema.ts'
import { secretIn } from './secret-file.ts'

/** Where Redis is: exactly one of `url`, `cluster` and `sentinel`. */
export interface RedisLocation extends ServerLocation {
  cluster?: ClusterAddress | undefined
}

export type Topology = 'single' | 'cluster' | 'sentinel'

export const topologyOf = ({ cluster, sentinel }: RedisLocation): Topology =>
  cluster ? 'cluster' : sentinel ? 'sentinel' : 'single'

/** How connections are made: `tcp`, `tls` or `unix`. */
export function transportOf({ url, cluster, sentinel }: RedisLocation): string {
  if (url !== undefined) return parseRedisUrl(url).transport
  return (cluster ?? sentinel)?.tls ? 'tls' : 'tcp'
}

/**
 * `REDIS_URL`, with the password of `REDIS_PASSWORD_FILE` if that is set. With a cluster or sentinels as it
 * is: it is not used.
 *
 * @throws Error that names the setting.
 */
export function urlWithPassword(config: Config): string {
  const { REDIS_URL, REDIS_PASSWORD_FILE, REDIS_CLUSTER, REDIS_SENTINELS } = config
  if (REDIS_PASSWORD_FILE === '' || REDIS_CLUSTER !== '' || REDIS_SENTINELS !== '') return REDIS_URL
  const url = URL.parse(REDIS_URL)
  if (!url?.host || url.password) {
    throw new Error(
      'REDIS_URL must name a host and have no password when REDIS_PASSWORD_FILE is set: redis://user@host:6379 or unix://user@localhost/path/to/socket',
    )
  }
  url.password = encodeURIComponent(secretIn('REDIS_PASSWORD_FILE', REDIS_PASSWORD_FILE))
  return url.href
}

/**
 * The Redis that the settings name. Reads the files of passwords and certificates.
 *
 * @param config As `loadConfig` returns it: `REDIS_URL` has its password.
 * @throws Error that names the settings which are wrong, or cannot take effect.
 */
export function redisLocation(config: Config): RedisLocation {
  refuseWithoutEffect(config)
  const location = namedLocation(config)
  return checked(config, location, location.url === undefined ? namesOf(config) : 'REDIS_URL')
}

/**
 * The Redis that sessions move to: a cluster with the user, password and TLS of `REDIS_URL`, or a URL, which
 * has its own. Undefined without `REDIS_MIGRATE_TO`.
 *
 * @param config As for `redisLocation`.
 * @throws Error as `redisLocation`.
 */
export function migrationTarget(config: Config): RedisLocation | undefined {
  const { REDIS_MIGRATE_TO: to, REDIS_URL } = config
  if (to === '') return undefined
  const tls = tlsOptions(config)
  if (to.includes('://')) {
    // It may do without TLS where REDIS_URL needs it.
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

const namesOf = ({ REDIS_CLUSTER }: Config) =>
  REDIS_CLUSTER === '' ? 'REDIS_SENTINELS' : 'REDIS_CLUSTER'

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

/** Undefined where the settings name none. */
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

/** @throws Error when a setting cannot take effect beside the others. */
function refuseWithoutEffect(config: Config): void {
  const hasCluster = config.REDIS_CLUSTER !== ''
  const hasSentinels = config.REDIS_SENTINELS !== ''
  const set = [
    ...(config.REDIS_URL === DEFAULT_REDIS_URL ? [] : ['REDIS_URL']),
    ...(hasCluster ? ['REDIS_CLUSTER'] : []),
    ...(hasSentinels ? ['REDIS_SENTINELS'] : []),
  ]
  const refuse: Refuse = (when, message) => {
    if (when) throw new Error(message)
  }
  const needs = (setting: keyof Config, other: string) =>
    refuse(config[setting] !== '', `${setting} is set, but ${other} is not`)

  refuse(set.length > 1, `${set.slice(0, 2).join(' and ')} are both set: only one can be used`)
  if (hasSentinels) {
    refuse(config.REDIS_SENTINEL_NAME === '', 'REDIS_SENTINELS needs a REDIS_SENTINEL_NAME')
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
    refuse(
      hasTlsOptions(config) && !config.REDIS_TLS,
      'REDIS_TLS_CA_FILE, REDIS_TLS_CERT_FILE, REDIS_TLS_KEY_FILE and REDIS_TLS_SERVER_NAME need REDIS_TLS=true',
    )
  } else {
    refuse(
      config.REDIS_USERNAME !== '',
      'REDIS_USERNAME is set, but REDIS_URL has the user name: redis://user@host:6379',
    )
    refuse(config.REDIS_TLS, 'REDIS_TLS is set, but REDIS_URL says so itself: rediss://host:6379')
  }
  if (hasCluster) refuseOnCluster(config, refuse)
  if (config.REDIS_MIGRATE_TO !== '') {
    const [other = 'REDIS_URL'] = set
    refuse(
      other !== 'REDIS_URL',
      `REDIS_MIGRATE_TO and ${other} are both set: sessions move from the single Redis of REDIS_URL; remove one of them`,
    )
    refuseStrategy(config, 'REDIS_MIGRATE_TO', refuse)
  }
  refuse(
    (config.REDIS_MIGRATE_TO === '') !== (config.REDIS_MIGRATE_HOME === ''),
    'REDIS_MIGRATE_TO and REDIS_MIGRATE_HOME need each other: set both or neither',
  )
  refuse(
    !hasCluster && config.REDIS_MIGRATE_TO === '' && config.REDIS_PARTITIONS !== DEFAULT_PARTITIONS,
    'REDIS_PARTITIONS is set, but neither REDIS_CLUSTER nor REDIS_MIGRATE_TO is',
  )
}

type Refuse = (when: boolean, message: string) => void

function refuseStrategy({ STRATEGY }: Config, setting: string, refuse: Refuse): void {
  refuse(
    ['transaction', 'script'].includes(STRATEGY),
    `STRATEGY=${STRATEGY} needs all keys on one server; with ${setting} use batch or pipeline`,
  )
}

/** What does not work on a cluster, where keys are on several servers. */
function refuseOnCluster(config: Config, refuse: Refuse): void {
  const { SALE_METHOD, RISK_CACHE_ENTRIES } = config
  refuseStrategy(config, 'REDIS_CLUSTER', refuse)
  refuse(
    SALE_METHOD === 'optimistic',
    'SALE_METHOD=optimistic watches a key on a connection of its own; with REDIS_CLUSTER use script',
  )
  refuse(
    ![0, DEFAULT_CACHE_ENTRIES].includes(RISK_CACHE_ENTRIES),
    'RISK_CACHE_ENTRIES is set, but with REDIS_CLUSTER there is no cache of risk features',
  )
}
