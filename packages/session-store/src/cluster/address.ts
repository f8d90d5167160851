import type { ConnectionOptions } from 'node:tls'
import type { NamesOf } from '../input.ts'
import { checkTls, hostOf } from '../redis/redis-url.ts'

/** Credentials and TLS for the servers of a cluster, or for those that sentinels monitor. */
interface Login {
  username?: string | undefined
  password?: string | undefined
  /** Connect with TLS: true, or options of Node's `tls.connect`. Default false. */
  tls?: ConnectionOptions | boolean | undefined
}

export const loginNames: NamesOf<Login> = { username: true, password: true, tls: true }

/** A Redis Cluster. */
export interface ClusterAddress extends Login {
  /** Some of the nodes, as `host:port`; the client discovers the others. Name several: one may be down. */
  nodes: readonly string[]
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

/** ioredis's options for the primary. @throws TypeError if the address is invalid. */
export function sentinelOptions(address: SentinelAddress) {
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

/** The nodes, and ioredis's options for each. @throws TypeError if the address is invalid. */
export function clusterOptions(cluster: ClusterAddress) {
  return { nodes: hostsOf('cluster', cluster.nodes), redisOptions: loginOptions(cluster) }
}

/** @throws TypeError if the address is invalid. The message contains no password and no part of a key. */
export function checkAddress({
  cluster,
  sentinel,
}: {
  cluster?: ClusterAddress | undefined
  sentinel?: SentinelAddress | undefined
}): void {
  if (cluster) clusterOptions(cluster)
  if (sentinel) sentinelOptions(sentinel)
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

/** Its errors never quote a node: the text may contain a password. */
function hostsOf(option: string, nodes: readonly string[], defaultPort?: number) {
  if (!Array.isArray(nodes) || nodes.length === 0) {
    throw new TypeError(`${option} needs a list of nodes, such as ['127.0.0.1:7000']`)
  }
  return nodes.map((node: unknown, index) => {
    const isPlain = typeof node === 'string' && /^[^/@?#\s]+$/.test(node)
    const url = isPlain ? URL.parse(`redis://${node}`) : null
    if (!url) throw new TypeError(`${option}: node ${index + 1} must look like host:port`)
    return hostOf(url, defaultPort)
  })
}
