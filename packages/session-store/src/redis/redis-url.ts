import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { type ConnectionOptions, createSecureContext } from 'node:tls'

/** The address and credentials of a Redis server, as options of ioredis. */
export interface RedisAddress {
  transport: 'tcp' | 'tls' | 'unix'
  options: {
    host?: string
    port?: number
    /** The path of the Unix socket. */
    path?: string
    username?: string
    password?: string
    /** Absent for database 0. */
    db?: number
    tls?: ConnectionOptions
  }
}

const DEFAULT_PORT = 6379
const transports = { 'redis:': 'tcp', 'rediss:': 'tls', 'unix:': 'unix' } as const

/**
 * Parses `redis://user:password@host:port/database`, the same with `rediss://` for TLS, or
 * `unix:///path/to/socket`. User, password, port (6379) and database (0) are optional. `?db=` also sets the
 * database; with a Unix socket it is the only way. A Unix socket with a user is
 * `unix://user:password@localhost/path/to/socket`.
 *
 * @param tls `ca`, `cert` and `key`, `servername` and all other options of Node's `tls.connect`. Default: Node's
 *   certificate authorities, and the host of the URL as the name in the certificate.
 * @throws TypeError for any other URL, for TLS options without `rediss://`, or for an unusable certificate or key. The
 *   message contains no part of the URL that may be secret, and no part of a key.
 */
export function parseRedisUrl(url: string, tls?: ConnectionOptions): RedisAddress {
  const parsed = typeof url === 'string' ? URL.parse(url) : null
  if (!parsed) {
    throw invalid(
      'it must look like redis://host:6379, rediss://host:6379 or unix:///path/to/socket, with special characters of user name and password percent-encoded',
    )
  }
  const transport = transports[parsed.protocol as keyof typeof transports]
  if (!transport) throw invalid('it must begin with redis://, rediss:// or unix:///')
  const location = transport === 'unix' ? socketOf(parsed) : hostOf(parsed)
  const db = databaseOf(parsed, transport === 'unix')
  if (tls !== undefined) {
    if (transport !== 'tls') throw new TypeError('tls needs a URL that begins with rediss://')
    checkTls(tls)
  }
  return {
    transport,
    options: {
      ...location,
      ...(transport === 'tls' && { tls: { ...serverNameOf(parsed), ...tls } }),
      ...(parsed.username && { username: decoded(parsed.username) }),
      ...(parsed.password && { password: decoded(parsed.password) }),
      ...(db && { db }),
    },
  }
}

/** Scheme, user, and the rest from the host on, of a URL without a password. It may name several hosts. */
const WITHOUT_PASSWORD = /^([a-z+]+:\/\/)(?:([^:@/]*)@)?([^@]+)$/

/**
 * Adds a password, and a user unless the URL has one, to the URL of a Redis.
 *
 * @throws TypeError if the URL has a password, or no host. The message contains no part of the URL.
 */
export function withCredentials(
  url: string,
  { username = '', password }: { username?: string; password: string },
): string {
  const [found, scheme, user = encodeURIComponent(username), rest = ''] =
    WITHOUT_PASSWORD.exec(url) ?? []
  if (!found || (rest.startsWith('/') && scheme !== 'unix://')) {
    throw invalid(
      'if its password is in a file, it must name a host and contain no password: redis://user@host:6379 or unix://user@localhost/path/to/socket',
    )
  }
  const host = rest.startsWith('/') ? 'localhost' : '' // only a URL with a host has a user
  return `${scheme}${user}:${encodeURIComponent(password)}@${host}${rest}`
}

/**
 * Where Redis is, by two variables of the environment: `REDIS_URL`, and `REDIS_PASSWORD_FILE` with the password that
 * the URL lacks.
 *
 * @returns the URL with its password; empty without `REDIS_URL`.
 * @throws Error if the file cannot be read or is empty; TypeError as `withCredentials`.
 */
export function redisUrlOf({
  REDIS_URL: url = '',
  REDIS_PASSWORD_FILE: file = '',
}: {
  REDIS_URL?: string | undefined
  REDIS_PASSWORD_FILE?: string | undefined
}): string {
  if (url === '' || file === '') return url
  return withCredentials(url, { password: secretIn('REDIS_PASSWORD_FILE', file) })
}

/**
 * Reads a secret from the file that a setting names, and trims white space.
 *
 * @throws Error that names the setting and the file, if it cannot be read or is empty.
 */
export function secretIn(setting: string, path: string): string {
  try {
    const secret = readFileSync(path, 'utf8').trim()
    if (secret === '') throw new Error(`${path} is empty`)
    return secret
  } catch (error) {
    throw new Error(`${setting} cannot be read: ${(error as Error).message}`) // includes the path
  }
}

/** @throws TypeError if a certificate or key is unusable. */
export function checkTls(tls: ConnectionOptions): void {
  if (typeof tls !== 'object' || tls === null) throw new TypeError('tls must be an object')
  if ((tls.cert === undefined) !== (tls.key === undefined)) {
    throw new TypeError('tls: set both cert and key, or neither')
  }
  try {
    // Node ignores an unreadable authority, such as a path instead of the content of a file.
    for (const certificate of [tls.ca ?? []].flat()) new X509Certificate(certificate)
    createSecureContext(tls)
  } catch (error) {
    throw new TypeError(`tls has an unusable ca, cert or key: ${(error as Error).message}`, {
      cause: error,
    })
  }
}

const invalid = (reason: string) => new TypeError(`invalid Redis URL: ${reason}`)

/** @throws TypeError if the host or the port is invalid. */
function hostOf({ hostname, port, pathname, search, hash }: URL) {
  // Must come first: these parts may be the rest of a password, which other messages would quote.
  if (`${pathname}${search}${hash}`.includes('@')) {
    throw invalid('a / ? # or @ in the user name or password must be percent-encoded')
  }
  if (hostname === '') throw invalid('the host is missing')
  if (port === '0') throw invalid('the port must be a number from 1 to 65535')
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || DEFAULT_PORT) }
}

/** Without `servername`, Node sends no SNI. SNI does not allow IP addresses. */
function serverNameOf({ hostname }: URL): ConnectionOptions {
  return isIP(hostname.replace(/^\[|\]$/g, '')) ? {} : { servername: hostname }
}

function socketOf({ hostname, port, pathname }: URL) {
  const path = decoded(pathname)
  const isLocal = (hostname === '' || hostname === 'localhost') && port === ''
  if (!isLocal || !/^\/[^\0]*[^\0/]$/.test(path)) {
    throw invalid(
      'a Unix socket needs its absolute path: unix:///path/to/socket or unix://user@localhost/path/to/socket',
    )
  }
  return { path }
}

function databaseOf({ pathname, searchParams, hash }: URL, isSocket: boolean): number {
  for (const name of searchParams.keys()) {
    if (name === 'db') continue
    // An unusual name may be a part of a password.
    const shown = /^[A-Za-z_]{1,32}$/.test(name) ? ` "${name}"` : ''
    throw invalid(`the query parameter${shown} is not supported; only db is`)
  }
  if (hash !== '') throw invalid('a fragment (#…) is not supported')
  const given = searchParams.getAll('db')
  if (!isSocket && pathname.length > 1) given.push(pathname.slice(1))
  const [database = '0', ...more] = given
  if (more.length > 0) throw invalid('it names the database more than once')
  if (!/^\d{1,10}$/.test(database)) {
    throw invalid('the database must be a whole number, as in redis://host:6379/5 or ?db=5')
  }
  return Number(database)
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw invalid('a % in the user name, password or path must be percent-encoded (%25)')
  }
}
