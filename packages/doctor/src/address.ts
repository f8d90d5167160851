import type { RedisOptions } from 'ioredis'
import { messageOf, Problem } from './problem.ts'

/** The URL without user and password, for messages. Also works for invalid URLs. */
export const hideCredentials = (url: string): string =>
  url.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/is, '$1')

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
 * The URL of the server.
 *
 * @param given the option `--url`.
 * @throws Problem without a URL, or if `given` contains a password: other users could see it.
 */
export function addressOf(given: string | undefined, env = process.env): string {
  if (given !== undefined && redisAddress(given).password) {
    throw new Problem(
      'A password on the command line is visible to all users of this machine. Set REDIS_URL in the environment instead.',
    )
  }
  if (env.REDIS_PASSWORD_FILE) {
    throw new Problem(
      'The doctor no longer reads REDIS_PASSWORD_FILE: unset it, and put the password into REDIS_URL.',
    )
  }
  const url = given ?? env.REDIS_URL
  if (!url) throw new Problem('Give the address of a server: --url redis://127.0.0.1:6379.')
  return url
}
