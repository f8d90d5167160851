// Not a named import of argon2: Node before 24.7 does not have it, and could not load the API at all.
import crypto, { randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import fastq from 'fastq'
import { ApiError } from './errors.ts'

/**
 * Cost of a new hash: 19 MiB, about 20 ms of CPU time. The minimum of
 * https://cheatsheetseries.owasp.org/cheatsheets/Password_Storage_Cheat_Sheet.html#argon2id
 */
const COST = { memory: 19_456, passes: 2, parallelism: 1 }
/** Maximum cost of a hash that is checked; memory in KiB. */
const MAX_COST = { memory: 262_144, passes: 20, parallelism: 16 }
const SALT_BYTES = 16
const KEY_BYTES = 32

/** Concurrent hash computations per process. libuv has four threads, and DNS and file access need some. */
export const MAX_RUNNING = 2
/** Maximum waiting checks; further ones are rejected. Less than half a second of work. */
export const MAX_WAITING = 32

interface Hash {
  readonly cost: typeof COST
  readonly salt: Buffer
  readonly key: Buffer
}

const jobs = fastq.promise(
  ({ password, ...hash }: Hash & { password: string }) => derive(password, hash),
  MAX_RUNNING,
)

/**
 * Hashes a password with Argon2id.
 *
 * @returns A PHC string: `$argon2id$v=19$m=19456,t=2,p=1$<salt>$<key>`.
 * @throws Error if Node has no Argon2 (before 24.7).
 */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES)
  const key = await derive(password, { cost: COST, salt, key: Buffer.alloc(KEY_BYTES) })
  return format({ cost: COST, salt, key })
}

/** A random hash that no password matches, for users who do not exist. */
const NO_PASSWORD = format({
  cost: COST,
  salt: randomBytes(SALT_BYTES),
  key: randomBytes(KEY_BYTES),
})

/**
 * Checks a password against a hash. For a user who does not exist pass `undefined`: the check fails after the
 * same time, so it does not reveal which users exist. A process runs two checks at a time; up to 32 more
 * wait.
 *
 * @param hash A PHC string, as from `hashPassword`.
 * @throws ApiError `API_OVERLOADED` (503) if too many checks are waiting.
 * @throws Error if the hash is malformed.
 */
export async function verifyPassword(
  password: string,
  hash: string = NO_PASSWORD,
): Promise<boolean> {
  const parsed = parseHash(hash)
  if (jobs.length() >= MAX_WAITING) {
    throw new ApiError('API_OVERLOADED', 'too many password checks are waiting')
  }
  return timingSafeEqual(await jobs.push({ ...parsed, password }), parsed.key)
}

async function derive(password: string, { cost, salt, key }: Hash): Promise<Buffer> {
  if (typeof crypto.argon2 !== 'function') {
    throw new Error(
      `password checks need Node 24.7 or newer for Argon2; this is ${process.version}`,
    )
  }
  return await promisify(crypto.argon2)('argon2id', {
    message: password.normalize('NFKC'), // keyboards may compose the same letters differently
    nonce: salt,
    tagLength: key.length,
    ...cost,
  })
}

const BASE64 = '[A-Za-z0-9+/]'
const PHC = new RegExp(
  `^\\$argon2id\\$v=19\\$m=(\\d{1,7}),t=(\\d{1,3}),p=(\\d{1,3})\\$(${BASE64}{11,86})\\$(${BASE64}{22,86})$`,
)

/**
 * Parses a PHC string (https://github.com/P-H-C/phc-string-format/blob/master/phc-sf-spec.md).
 *
 * @throws Error if it is malformed. The message does not contain the hash.
 */
function parseHash(text: string): Hash {
  const [, memory, passes, parallelism, salt = '', key = ''] = PHC.exec(text) ?? []
  if (memory === undefined) {
    throw new Error('the hash must be $argon2id$v=19$m=…,t=…,p=…$<salt>$<key>')
  }
  const cost = {
    memory: Number(memory),
    passes: Number(passes),
    parallelism: Number(parallelism),
  }
  for (const name of ['memory', 'passes', 'parallelism'] as const) {
    if (cost[name] < 1 || cost[name] > MAX_COST[name]) {
      throw new Error(`the hash has ${name} ${cost[name]}; allowed: 1 to ${MAX_COST[name]}`)
    }
  }
  if (cost.memory < 8 * cost.parallelism) {
    throw new Error('the hash has less than 8 KiB of memory per degree of parallelism')
  }
  return { cost, salt: Buffer.from(salt, 'base64'), key: Buffer.from(key, 'base64') }
}

function format({ cost: { memory, passes, parallelism }, salt, key }: Hash): string {
  const base64 = (bytes: Buffer) => bytes.toString('base64').replaceAll('=', '')
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${base64(salt)}$${base64(key)}`
}
