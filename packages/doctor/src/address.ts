import { readFile } from 'node:fs/promises'
import type { RedisOptions } from 'ioredis'
import { messageOf, Problem } from './problem.ts'

/** The URL without user and password, for messages. Also works for invalid URLs. */
export const hideCredentials = (url: string): string =>
  url.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/is, '$1')

/** Whether the host of a URL is this machine. */
export function isLocal(url: string): boolean {
  const { protocol, hostname = '' } = URL.parse(url) ?? {}
  return protocol === 'unix:' || /^(localhost|\[::1\]|127\.\d+\.\d+\.\d+)$/.test(hostname)
}

/**
 * Parses `redis://user:password@host:port`, the same with `rediss://`, or `unix://user:password@localhost/path`.
 *
 * @throws Problem for any other URL.
 */
export function redisAddress(url: string): Omit<RedisOptions, 'replyMapping'> {
  try {
    const { protocol, hostname, port, pathname, username, password } = new URL(url)
    const isSocket = protocol === 'unix:'
    if (!['redis:', 'rediss:', 'unix:'].includes(protocol) || (!isSocket && !hostname)) {
      throw new Error('it must begin with redis://, rediss:// or unix:///')
    }
    const host = hostname.replace(/^\[|\]$/g, '')
    return {
      ...(isSocket ? { path: decodeURIComponent(pathname) } : { host, port: Number(port || 6379) }),
      ...(protocol === 'rediss:' && { tls: { servername: host } }),
      ...(username && { username: decodeURIComponent(username) }),
      ...(password && { password: decodeURIComponent(password) }),
    }
  } catch (error) {
    const why = error instanceof URIError ? 'a % must be percent-encoded (%25)' : messageOf(error)
    throw new Problem(`"${hideCredentials(url)}" is not a valid Redis URL: ${why}.`)
  }
}

/**
 * The address of the server, with the password in `REDIS_PASSWORD_FILE` if that is set.
 *
 * @param given the option `--url`.
 * @throws Problem without an address, or if `given` contains a password: other users could see it.
 */
export async function addressOf(given: string | undefined, env = process.env): Promise<string> {
  if (given !== undefined && redisAddress(given).password) {
    throw new Problem(
      'A password on the command line is visible to all users of this machine. Set REDIS_URL in the environment instead, or put the password into a file (REDIS_PASSWORD_FILE).',
    )
  }
  const url = given ?? env.REDIS_URL
  if (!url) throw new Problem('Give the address of a server: --url redis://127.0.0.1:6379.')
  const file = env.REDIS_PASSWORD_FILE
  if (!file) return url
  const parsed = URL.parse(url)
  if (!parsed?.host || parsed.password) {
    throw new Problem(
      `${hideCredentials(url)} must have a host and no password, because the password is in ${file}.`,
    )
  }
  try {
    const password = (await readFile(file, 'utf8')).trim()
    if (password === '') throw new Error(`${file} is empty`)
    parsed.password = encodeURIComponent(password)
  } catch (error) {
    throw new Problem(`Cannot read the password of Redis: ${messageOf(error)}`)
  }
  return parsed.href
}
