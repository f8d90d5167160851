import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { hideCredentials } from './address.ts'
import { Problem } from './problem.ts'

/** The users of `apps/server-build/users.acl`: what the API is, and what watches Redis. */
export type RedisUser = 'api' | 'operator'

/**
 * The URL of a Redis with a user and the password that is in its folder of secrets.
 *
 * @param url `redis://…` or `unix:///…`.
 */
export async function withPasswordOf(
  user: RedisUser,
  url: string,
  secrets: string,
): Promise<string> {
  const host = url.startsWith('unix:///') ? 'localhost' : '' // only a URL with a host has users
  return await withPasswordIn(
    url.replace('://', `://${user}@${host}`),
    join(secrets, user, 'redis-password'),
  )
}

/**
 * The Redis that `REDIS_URL` names, with the password that the file has that `REDIS_PASSWORD_FILE` names:
 * as the API reads them. Undefined where the environment names none.
 *
 * @throws Problem when the password cannot be read, or has no place in the URL.
 */
export async function redisOfEnvironment(): Promise<string | undefined> {
  const { REDIS_URL: url, REDIS_PASSWORD_FILE: file } = process.env
  if (!url) return undefined
  return file ? await withPasswordIn(url, file) : url
}

/**
 * The URL with the password that a file has.
 *
 * @throws Problem when the file cannot be read, or the URL has a password or no host.
 */
async function withPasswordIn(url: string, path: string): Promise<string> {
  const parsed = URL.parse(url)
  if (!parsed?.host || parsed.password) {
    throw new Problem(`${hideCredentials(url)} must have a host, and no password beside ${path}.`)
  }
  try {
    parsed.password = encodeURIComponent((await readFile(path, 'utf8')).trim())
  } catch (error) {
    throw new Problem(`The password of Redis cannot be read: ${(error as Error).message}`)
  }
  return parsed.href
}
