import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseRedisUrl, type SessionStoreOptions } from '@onetrip/session-store'
import type { RedisOptions as IoredisOptions } from 'ioredis'
import { messageOf, Problem } from './problem.ts'

export const transports = ['tcp', 'unix'] as const
export type Transport = (typeof transports)[number]

type StoreLocation = Pick<SessionStoreOptions, 'url' | 'cluster'>

/** Options of ioredis. (Its type for replies depends on the part left out.) */
export type RedisOptions = Omit<IoredisOptions, 'replyMapping'>

/** The URL of a Redis on a Unix socket. */
export const unixUrl = (path: string): string =>
  `unix://${encodeURI(path).replaceAll('#', '%23').replaceAll('?', '%3F')}`

/**
 * Parses the URL of a Redis into options of ioredis.
 *
 * @throws Problem when the store would refuse it.
 */
export function redisAddress(url: string): { transport: Transport; options: RedisOptions } {
  try {
    const { transport, options } = parseRedisUrl(url)
    return { transport: transport === 'unix' ? 'unix' : 'tcp', options }
  } catch (error) {
    throw new Problem(
      `"${hideCredentials(url)}" is not the address of a Redis: ${messageOf(error)}.`,
    )
  }
}

/** The URL without user and password, for messages; also of text that is no proper URL. */
export function hideCredentials(url: string): string {
  return url.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/is, '$1')
}

/** Whether a URL (of a Redis or an API) leads to this machine and nowhere else. */
export function isLocal(url: string): boolean {
  const { protocol, hostname = '' } = URL.parse(url) ?? {}
  return protocol === 'unix:' || /^(localhost|\[::1\]|127\.\d+\.\d+\.\d+)$/.test(hostname)
}

/** The option with which a user allows load on another machine. */
export const ownHostOption = '--i-own-this-host'

/** @throws Problem when a URL leads to another machine and the user has not said that it is theirs. */
export function requireOwnHost(url: string, owned: boolean): void {
  if (owned || isLocal(url)) return
  throw new Problem(
    `${hideCredentials(url)} is not this machine. If it is yours to put load on, say so with ${ownHostOption}.`,
  )
}

/**
 * The users of `users.acl` and `cluster.acl` (apps/server-build): the API, one for monitoring, and the one that
 * forms a cluster.
 */
export type RedisUser = 'api' | 'operator' | 'cluster'

/** The file with a user's password in a folder of secrets. */
export const passwordFileOf = (user: RedisUser, secrets: string): string =>
  join(secrets, user, 'redis-password')

/** A user and the password in a folder of secrets. @throws Problem when the password cannot be read. */
export async function credentialsOf(username: RedisUser, secrets: string) {
  return { username, password: await passwordIn(passwordFileOf(username, secrets)) }
}

/** The URL of a Redis with a user, and with the user's password from a folder of secrets. */
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
 * `REDIS_URL` with the password in the file `REDIS_PASSWORD_FILE`, if that is set, as the API reads
 * them. Undefined where there is no `REDIS_URL`.
 *
 * @throws Problem when the password cannot be read, or has no place in the URL.
 */
export async function redisOfEnvironment(env = process.env): Promise<string | undefined> {
  const { REDIS_URL: url, REDIS_PASSWORD_FILE: file } = env
  return url && file ? await withPasswordIn(file, url) : url || undefined
}

/** How a program reaches Redis: one server by its URL, or a cluster by some of its nodes (`host:port`). */
export type RedisTarget = { readonly url: string } | ClusterTarget

export interface ClusterTarget {
  readonly cluster: readonly string[]
  /** The user and the file with the password. Default: no user, no password. */
  readonly username?: string | undefined
  readonly passwordFile?: string | undefined
}

/** A target as the environment of an API, or of the demo service. A URL has its password in it. */
export function settingsOfTarget(target: RedisTarget): NodeJS.ProcessEnv {
  const { cluster = [], username = '', passwordFile = '' } = 'url' in target ? {} : target
  return {
    REDIS_URL: 'url' in target ? target.url : undefined,
    REDIS_CLUSTER: cluster.join(','),
    REDIS_USERNAME: username,
    REDIS_PASSWORD_FILE: passwordFile,
    REDIS_SENTINELS: '',
  }
}

/** A target as options of the store. @throws Problem when the password cannot be read. */
export async function locationOf(target: RedisTarget): Promise<StoreLocation> {
  if ('url' in target) return target
  const { cluster: nodes, username, passwordFile } = target
  const password = passwordFile && (await passwordIn(passwordFile))
  return { cluster: { nodes, username, password } }
}

/** What `settingsOfTarget` has written. */
export function targetOfSettings(env: NodeJS.ProcessEnv): RedisTarget {
  const { REDIS_CLUSTER: cluster, REDIS_URL: url = '' } = env
  if (!cluster) return { url }
  return {
    cluster: cluster.split(','),
    username: env.REDIS_USERNAME || undefined,
    passwordFile: env.REDIS_PASSWORD_FILE || undefined,
  }
}

async function withPasswordIn(file: string, url: string): Promise<string> {
  const parsed = URL.parse(url)
  if (!parsed?.host || parsed.password) {
    throw new Problem(`${hideCredentials(url)} must have a host, and no password beside ${file}.`)
  }
  parsed.password = encodeURIComponent(await passwordIn(file))
  return parsed.href
}

async function passwordIn(file: string): Promise<string> {
  try {
    return (await readFile(file, 'utf8')).trim()
  } catch (error) {
    throw new Problem(`The password of Redis cannot be read: ${messageOf(error)}`)
  }
}
