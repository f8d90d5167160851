import type { ConnectionOptions } from 'node:tls'
import { checkedOptions, parseRedisUrl, type RedisOptions } from '@onetrip/session-store'
import type { NatMap } from 'ioredis'

/** Credentials and TLS for the nodes of a cluster, or for the servers that sentinels monitor. */
interface Login {
  username?: string | undefined
  password?: string | undefined
  /** Connect with TLS: true, or options of Node's `tls.connect`. Default false. */
  tls?: ConnectionOptions | boolean | undefined
}

/** A Redis Cluster. */
export interface ClusterAddress extends Login {
  /** Some of the nodes, as `host:port`; the client discovers the others. Name several: one may be down. */
  nodes: readonly string[]
  /** Where a node can be reached, by the address that it announces: for nodes behind NAT. As of ioredis. */
  natMap?: NatMap | undefined
}

/** A primary that Redis Sentinel monitors. */
export interface SentinelAddress extends Login {
  /** The sentinels, as `host:port`. The default port is 26379. `tls` also applies to them. */
  nodes: readonly string[]
  /** The name of the primary, as in `sentinel monitor`. */
  name: string
  /** Credentials of the sentinels. */
  sentinelUsername?: string | undefined
  sentinelPassword?: string | undefined
}

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
  if (kind === 'cluster') {
    clusterNodes(server)
    return { cluster: server }
  }
  const sentinel = {
    ...server,
    name: decoded(name),
    sentinelUsername: sentinelUser && decoded(sentinelUser),
    sentinelPassword,
  }
  sentinelOptions(sentinel)
  return { sentinel }
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

const names = { nodes: undefined, username: undefined, password: undefined, tls: undefined }
const sentinelNames = { name: undefined, sentinelUsername: undefined, sentinelPassword: undefined }

/** The nodes, and ioredis's options for each. @throws TypeError if the address is invalid. */
export function clusterNodes(address: ClusterAddress) {
  checkedOptions('redis', address, { ...names, natMap: undefined }, {})
  return { nodes: hostsOf('cluster', address.nodes, 6379), login: loginOptions(address) }
}

/** ioredis's options for the primary. @throws TypeError if the address is invalid. */
export function sentinelOptions(address: SentinelAddress) {
  checkedOptions('redis', address, { ...names, ...sentinelNames }, {})
  const { name, nodes, sentinelUsername, sentinelPassword } = address
  if (typeof name !== 'string' || name === '') {
    throw new TypeError('sentinel needs the name of the primary, as in "sentinel monitor"')
  }
  if (sentinelUsername !== undefined && sentinelPassword === undefined) {
    throw new TypeError('sentinelUsername needs a sentinelPassword')
  }
  const login = loginOptions(address)
  return {
    ...login,
    name,
    sentinels: hostsOf('sentinel', nodes, 26_379),
    ...(sentinelUsername !== undefined && { sentinelUsername }),
    ...(sentinelPassword !== undefined && { sentinelPassword }),
    ...(login.tls && { sentinelTLS: login.tls, enableTLSForSentinelMode: true }),
  }
}

function loginOptions({ username, password, tls }: Login) {
  if (username !== undefined && password === undefined) {
    throw new TypeError('username needs a password')
  }
  const tlsOptions = tls === true ? {} : tls || undefined
  if (tlsOptions) parseRedisUrl('rediss://any', tlsOptions) // checks them
  return {
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(tlsOptions && { tls: tlsOptions }),
  }
}

/** Its errors never quote a node: the text may contain a password. */
function hostsOf(option: string, nodes: readonly string[], defaultPort: number) {
  if (!Array.isArray(nodes) || nodes.length === 0) {
    throw new TypeError(`${option} needs a list of nodes, such as ['127.0.0.1:7000']`)
  }
  return nodes.map((node: unknown, index) => {
    const isPlain = typeof node === 'string' && /^[^/@?#\s]+$/.test(node)
    if (!isPlain || !URL.canParse(`redis://${node}`)) {
      throw new TypeError(`${option}: node ${index + 1} must look like host:port`)
    }
    const port = /:\d+$/.test(node) ? '' : `:${defaultPort}`
    return parseRedisUrl(`redis://${node}${port}`).options
  })
}
