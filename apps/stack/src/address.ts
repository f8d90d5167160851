import { parseRedisUrl } from '@onetrip/session-store'
import type { RedisOptions as IoredisOptions } from 'ioredis'
import { Problem } from './problem.ts'

export const transports = ['tcp', 'unix'] as const
export type Transport = (typeof transports)[number]

/** How ioredis is told where to connect. (Its type for replies depends on the part left out.) */
export type RedisOptions = Omit<IoredisOptions, 'replyMapping'>

/** The form in which the API takes the path of a Unix socket. */
export function unixUrl(path: string): string {
  return `unix://${path}`
}

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
      `"${hideCredentials(url)}" is not the address of a Redis: ${(error as Error).message}.`,
    )
  }
}

/** The URL as it may be printed: without user and password, also if it is no proper one. */
export function hideCredentials(url: string): string {
  return url.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/is, '$1')
}

/** Whether a URL (of a Redis or an API) leads to this machine and nowhere else. */
export function isLocal(url: string): boolean {
  const parsed = URL.parse(url)
  if (!parsed) return false
  if (parsed.protocol === 'unix:') return true
  const host = parsed.hostname.replace(/^\[(.*)\]$/, '$1')
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host)
}

/** The option by which a user claims another machine; nothing else lets load go there. */
export const ownHostOption = '--i-own-this-host'

/** @throws Problem when a URL leads to another machine and the user has not said that it is theirs. */
export function requireOwnHost(url: string, owned: boolean): void {
  if (owned || isLocal(url)) return
  throw new Problem(
    `${hideCredentials(url)} is not this machine. If it is yours to put load on, say so with ${ownHostOption}.`,
  )
}
