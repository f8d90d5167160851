import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseRedisUrl } from '@onetrip/session-store'
import { parseLocation } from '@onetrip/session-store/cluster'
import type { RedisOptions as IoredisOptions } from 'ioredis'
import { messageOf, Problem } from './problem.ts'

export const transports = ['tcp', 'unix'] as const
export type Transport = (typeof transports)[number]

/** Options of ioredis. Its type for replies depends on the omitted option. */
export type RedisOptions = Omit<IoredisOptions, 'replyMapping'>

/** The URL of a Redis on a Unix socket. */
export const unixUrl = (path: string): string =>
  `unix://${encodeURI(path).replaceAll('#', '%23').replaceAll('?', '%3F')}`

/**
 * Parses the URL of a Redis into options of ioredis.
 *
 * @throws Problem if the store would reject the URL.
 */
export function redisAddress(url: string): { transport: Transport; options: RedisOptions } {
  try {
    const { transport, options } = parseRedisUrl(url)
    return { transport: transport === 'unix' ? 'unix' : 'tcp', options }
  } catch (error) {
    throw new Problem(`"${hideCredentials(url)}" is not a valid Redis URL: ${messageOf(error)}.`)
  }
}

/** The URL without user and password, for messages. Also works for invalid URLs. */
export function hideCredentials(url: string): string {
  return url.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/is, '$1')
}

/** Whether the host of a URL (of a Redis or an API) is this machine. */
export function isLocal(url: string): boolean {
  const { protocol, hostname = '' } = URL.parse(url) ?? {}
  return protocol === 'unix:' || /^(localhost|\[::1\]|127\.\d+\.\d+\.\d+)$/.test(hostname)
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

/** The file with the password of a user in a folder of secrets. */
const passwordFileOf = (user: RedisUser, secrets: string): string =>
  join(secrets, user, 'redis-password')

/** A user, and the password from a folder of secrets. @throws Problem if the password cannot be read. */
export async function credentialsOf(username: RedisUser, secrets: string) {
  return { username, password: await passwordIn(passwordFileOf(username, secrets)) }
}

/** Adds a user, and the password from a folder of secrets, to the URL of a Redis. */
export async function withPasswordOf(
  user: RedisUser,
  url: string,
  secrets: string,
): Promise<string> {
  const host = url.startsWith('unix:///') ? 'localhost' : '' // only a URL with a host has users
  const file = passwordFileOf(user, secrets)
  return await withPasswordIn(file, url.replace('://', `://${user}@${host}`))
}

/**
 * `REDIS_URL`, with the password from `REDIS_PASSWORD_FILE` if that is set, as in the API. Undefined without
 * `REDIS_URL`.
 *
 * @throws Problem if the password cannot be read, or cannot be added to the URL.
 */
export async function redisOfEnvironment(env = process.env): Promise<string | undefined> {
  const { REDIS_URL: url, REDIS_PASSWORD_FILE: file } = env
  return url && file ? await withPasswordIn(file, url) : url || undefined
}

/** The nodes and credentials in a URL of `clusterUrl`; undefined for any other URL. */
export const clusterOf = (url: string) =>
  url.startsWith('redis+cluster:') ? parseLocation(url).cluster : undefined

/** The URL of a cluster with some of its nodes (`host:port`); with `secrets`, for the user `api`. */
export async function clusterUrl(nodes: readonly string[], secrets?: string): Promise<string> {
  const { username, password } = secrets ? await credentialsOf('api', secrets) : {}
  const user = password ? `${username}:${encodeURIComponent(password)}@` : ''
  return `redis+cluster://${user}${nodes.join(',')}`
}

async function withPasswordIn(file: string, url: string): Promise<string> {
  const parsed = URL.parse(url)
  if (!parsed?.host || parsed.password) {
    throw new Problem(
      `${hideCredentials(url)} must have a host and no password, because the password is in ${file}.`,
    )
  }
  parsed.password = encodeURIComponent(await passwordIn(file))
  return parsed.href
}

/** @throws Problem if the file cannot be read or is empty. */
export async function passwordIn(file: string): Promise<string> {
  try {
    const password = (await readFile(file, 'utf8')).trim()
    if (password === '') throw new Error(`${file} is empty`)
    return password
  } catch (error) {
    throw new Problem(`Cannot read the password of Redis: ${messageOf(error)}`)
  }
}
