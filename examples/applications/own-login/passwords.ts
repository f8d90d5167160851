import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto'
import { ApiError } from '@onetrip/api'

/**
 * Cost of a new hash: 16 MiB. A minimum of
 * https://cheatsheetseries.owasp.org/cheatsheets/Password_Storage_Cheat_Sheet.html#scrypt
 */
const COST = { N: 16_384, r: 8, p: 5 }
const KEY_BYTES = 32

/** Concurrent computations per process. libuv has four threads, and DNS and file access need some. */
export const MAX_RUNNING = 2
/** Maximum waiting checks; further ones are rejected. */
export const MAX_WAITING = 8

/** Hashes a password with scrypt. Returns `scrypt:N:r:p:salt:key`. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(16)
  return format(salt, await derive(password, salt, KEY_BYTES, COST))
}

const format = (salt: Buffer, key: Buffer) =>
  ['scrypt', COST.N, COST.r, COST.p, salt.toString('base64'), key.toString('base64')].join(':')

/** A random hash that no password matches, for users who do not exist. */
const NO_PASSWORD = format(randomBytes(16), randomBytes(KEY_BYTES))

/**
 * Checks a password against a hash. For a user who does not exist pass `undefined`: the check fails after the same
 * time, so it does not reveal which users exist.
 *
 * @throws ApiError `API_OVERLOADED` (503) if too many checks are waiting.
 * @throws Error if the hash is malformed. The message does not contain the hash.
 */
export async function verifyPassword(password: string, hash = NO_PASSWORD): Promise<boolean> {
  const [name, N, r, p, salt = '', key = ''] = hash.split(':')
  const expected = Buffer.from(key, 'base64')
  // An empty key would match every password.
  if (name !== 'scrypt' || expected.length < KEY_BYTES) {
    throw new Error('the hash must be scrypt:N:r:p:salt:key')
  }
  const cost = { N: Number(N), r: Number(r), p: Number(p) }
  const saltBytes = Buffer.from(salt, 'base64')
  return await limited(async () =>
    timingSafeEqual(await derive(password, saltBytes, expected.length, cost), expected),
  )
}

const derive = (password: string, salt: Buffer, length: number, cost: ScryptOptions) =>
  new Promise<Buffer>((resolve, reject) => {
    // Keyboards may compose the same letters differently: NFKC.
    scrypt(password.normalize('NFKC'), salt, length, cost, (error, key) =>
      error ? reject(error) : resolve(key),
    )
  })

let running = 0
const waiting: (() => void)[] = []

async function limited<Result>(work: () => Promise<Result>): Promise<Result> {
  if (running < MAX_RUNNING) running++
  else if (waiting.length < MAX_WAITING) await new Promise<void>((start) => waiting.push(start))
  else throw new ApiError('API_OVERLOADED', 'too many password checks are waiting')
  try {
    return await work()
  } finally {
    const next = waiting.shift() // takes this place
    if (next) next()
    else running--
  }
}
