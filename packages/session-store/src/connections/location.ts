import type { ConnectionOptions } from 'node:tls'
import { checkTls, hostOf, redisAddress } from './redis-url.ts'

/** How to log in to the servers of a cluster, or to those that sentinels watch. */
interface Login {
  username?: string | undefined
  password?: string | undefined
  /** True, or options of Node's `tls.connect`: connect by TLS. Default false. */
  tls?: ConnectionOptions | boolean | undefined
}

/** A Redis Cluster. */
export interface ClusterAddress extends Login {
  /** Some of the nodes, as `host:port`: the others are learnt from them. Name several; one may be down. */
  nodes: readonly string[]
}

/** The master that Redis Sentinel names. */
export interface SentinelAddress extends Login {
  /** The sentinels, as `host:port`. The default port is 26379. With `tls` they are reached by TLS, too. */
  nodes: readonly string[]
  /** The name of the master, as in `sentinel monitor`. */
  name: string
  /** Of the sentinels, which have users of their own. */
  sentinelUsername?: string | undefined
  sentinelPassword?: string | undefined
}

/** Where one server is. Exactly one of `url` and `sentinel` is given. */
export interface ServerLocation {
  /**
   * `redis://host:port/database`, `rediss://` or `unix:///path/to/socket?db=database`, each with user
   * name and password if needed (`parseRedisUrl`). A database that cannot be selected is never replaced
   * by another: `ready` fails.
   */
  url?: string | undefined
  /**
   * For a URL with `rediss://`: `ca`, `cert` and `key` (in PEM format), `servername` and whatever else
   * Node's `tls.connect` takes. Default: Node's certificate authorities, and the host of the URL as the
   * name in the certificate and for SNI.
   */
  tls?: ConnectionOptions | undefined
  /** Redis Sentinel: the master, whichever server that is at the moment. Always database 0. */
  sentinel?: SentinelAddress | undefined
}

/** ioredis's options of one server. @throws TypeError when the location cannot be used. */
export function serverOptions({ url, tls, sentinel }: ServerLocation) {
  if (sentinel === undefined) return redisAddress(url ?? '', tls).options
  const { name, sentinelUsername, sentinelPassword } = sentinel
  if (typeof name !== 'string' || name === '') {
    throw new TypeError('sentinel needs the name of the master, as in "sentinel monitor"')
  }
  if (sentinelUsername !== undefined && sentinelPassword === undefined) {
    throw new TypeError('sentinelUsername needs a sentinelPassword')
  }
  const login = loginOptions(sentinel)
  return {
    ...login,
    name,
    sentinels: hostsOf('sentinel', sentinel.nodes, 26_379),
    ...(sentinelUsername !== undefined && { sentinelUsername }),
    ...(sentinelPassword !== undefined && { sentinelPassword }),
    ...(login.tls && { sentinelTLS: login.tls, enableTLSForSentinelMode: true }),
  }
}

/** The nodes, and ioredis's options of each. @throws TypeError when the address cannot be used. */
export function clusterOptions(cluster: ClusterAddress) {
  return { nodes: hostsOf('cluster', cluster.nodes), redisOptions: loginOptions(cluster) }
}

/** @throws TypeError when the location cannot be used. Its message has no password and no part of a key. */
export function checkLocation(location: ServerLocation & { cluster?: ClusterAddress | undefined }) {
  if (location.cluster) clusterOptions(location.cluster)
  else serverOptions(location)
}

function loginOptions({ username, password, tls }: Login) {
  if (username !== undefined && password === undefined) {
    throw new TypeError('username needs a password')
  }
  const tlsOptions = tls === true ? {} : tls || undefined
  if (tlsOptions) checkTls(tlsOptions)
  return {
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(tlsOptions && { tls: tlsOptions }),
  }
}

/** No message has a part of what was given: it may be a password. */
function hostsOf(option: string, nodes: readonly string[], defaultPort?: number) {
  if (!Array.isArray(nodes) || nodes.length === 0) {
    throw new TypeError(`${option} needs a list of nodes, as ['127.0.0.1:7000']`)
  }
  return nodes.map((node: unknown, index) => {
    const isPlain = typeof node === 'string' && /^[^/@?#\s]+$/.test(node)
    const url = isPlain ? URL.parse(`redis://${node}`) : null
    if (!url) throw new TypeError(`${option}: node ${index + 1} must look like host:port`)
    return hostOf(url, defaultPort)
  })
}
