import { join } from 'node:path'
import { parseRedisUrl, redisUrlOf, secretIn, withCredentials } from '@onetrip/session-store'
import { messageOf, Problem } from './problem.ts'

export const transports = ['tcp', 'unix'] as const
export type Transport = (typeof transports)[number]

/** The URL of a Redis on a Unix socket. */
export const unixUrl = (path: string): string =>
  `unix://${encodeURI(path).replaceAll('#', '%23').replaceAll('?', '%3F')}`

/**
 * `REDIS_URL` with the password of `REDIS_PASSWORD_FILE`, as in the API; undefined without `REDIS_URL`.
 *
 * @throws Problem if the password cannot be read, or the URL is not that of one server.
 */
export function runningRedis(env = process.env): string | undefined {
  try {
    const url = redisUrlOf(env)
    if (url !== '') parseRedisUrl(url)
    return url || undefined
  } catch (error) {
    throw new Problem(`REDIS_URL: ${messageOf(error)}.`)
  }
}

/** The URL without user and password, for messages. Also works for invalid URLs. */
export function hideCredentials(url: string): string {
  return url.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/is, '$1')
}

/**
 * Whether the host of a URL (of a Redis or an API) is this machine, or `OWN_HOST`: the container of Redis in
 * docker-compose.yml, for the demo service.
 */
export function isLocal(url: string): boolean {
  const { protocol, hostname = '' } = URL.parse(url) ?? {}
  if (protocol === 'unix:' || /^(localhost|\[::1\]|127\.\d+\.\d+\.\d+)$/.test(hostname)) return true
  return hostname !== '' && hostname === process.env.OWN_HOST
}

/** The option that allows load on another machine. */
export const ownHostOption = '--i-own-this-host'

/** @throws Problem if the host of a URL is another machine and `owned` is false. */
export function requireOwnHost(url: string, owned: boolean): void {
  if (owned || isLocal(url)) return
  throw new Problem(
    `${hideCredentials(url)} is not this machine. If you own that host, add ${ownHostOption}.`,
  )
}

/**
 * Users of `users.acl` and `cluster.acl` (apps/server-build): for the API, for monitoring, for redis_exporter, and
 * for forming a cluster.
 */
export type RedisUser = 'api' | 'operator' | 'exporter' | 'cluster'

/** A user, and the password from a folder of secrets. @throws Problem if the password cannot be read. */
export const credentialsOf = (username: RedisUser, secrets: string) => ({
  username,
  password: secretIn('The password of Redis', join(secrets, username, 'redis-password')),
})

/** The URL of a Redis with a user and its password. Without secrets, there are no users. */
export const urlFor = (user: RedisUser, url: string, secrets: string | undefined): string =>
  secrets ? withCredentials(url, credentialsOf(user, secrets)) : url
