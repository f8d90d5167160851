import { randomBytes, timingSafeEqual } from 'node:crypto'
import { StoreError } from './errors.ts'
import { hmacSha256 } from './hmac.ts'
import { checkRange } from './range.ts'

export interface TokensOptions {
  /** At least one, of at least 32 characters: the first signs, all verify (so that they can rotate). */
  secrets: readonly string[]
  /** How long a token is good for, however much it is used: 1 s to 100 years. Default 30 days. */
  lifetimeSeconds?: number
  /** Milliseconds since 1970. Default `Date.now`. */
  clock?: () => number
}

export interface Tokens {
  /** A new token: `<id>.<signature>`. */
  issue(): string
  /**
   * The id of a token's session, which is all that Redis ever sees of it. Asks nobody.
   *
   * @throws StoreError `ONETRIP_INVALID_TOKEN` (malformed or forged) or `ONETRIP_EXPIRED_TOKEN`.
   */
  verify(token: string): string
  /** When the token of this id stops being good, in Unix milliseconds. */
  expiresAt(id: string): number
}

const TIME_BYTES = 6
const RANDOM_BYTES = 18 // 144 random bits; with the time 24 bytes, which base64url writes unpadded
const ID_LENGTH = ((TIME_BYTES + RANDOM_BYTES) * 4) / 3
const ID_SHAPE = new RegExp(`^[A-Za-z0-9_-]{${ID_LENGTH}}$`)
// 43 letters hold two bits more than a signature: only the spelling in which they are 0 is ours.
const SHAPE = new RegExp(`^[A-Za-z0-9_-]{${ID_LENGTH}}\\.[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$`)
const SIGNATURE_LENGTH = 43
const CLOCK_SKEW_MS = 60_000
const MIN_SECRET_LENGTH = 32
const SECRETS_RULE = `tokens.secrets must be a list of one or more strings of at least ${MIN_SECRET_LENGTH} characters`
const MAX_LIFETIME_SECONDS = 100 * 365 * 24 * 3600

const isSecret = (secret: unknown) =>
  typeof secret === 'string' && secret.length >= MIN_SECRET_LENGTH

const issueTimeOf = (id: string) => Buffer.from(id, 'base64url').readUIntBE(0, TIME_BYTES)

/** When an id was issued, in Unix milliseconds; undefined when it cannot be one of ours. */
export const issuedAt = (id: string): number | undefined =>
  ID_SHAPE.test(id) ? issueTimeOf(id) : undefined

/** @throws TypeError when there is no secret, one is too short, or another option is unusable. */
export function createTokens(options: TokensOptions): Tokens {
  const { secrets, lifetimeSeconds = 30 * 24 * 3600, clock = Date.now } = { ...options }
  if (!Array.isArray(secrets) || ![...secrets].every(isSecret)) throw new TypeError(SECRETS_RULE)
  checkRange('tokens.lifetimeSeconds', lifetimeSeconds, { least: 1, most: MAX_LIFETIME_SECONDS })
  if (typeof clock !== 'function') throw new TypeError('tokens.clock must be a function')
  const signers = secrets.map((secret) => hmacSha256(secret, ID_LENGTH))
  const [sign] = signers
  if (sign === undefined) throw new TypeError(SECRETS_RULE)
  const lifetimeMs = lifetimeSeconds * 1000
  const given = Buffer.alloc(SIGNATURE_LENGTH)
  const expected = Buffer.alloc(SIGNATURE_LENGTH)

  return {
    expiresAt: (id) => issueTimeOf(id) + lifetimeMs,
    issue() {
      const bytes = Buffer.allocUnsafe(TIME_BYTES + RANDOM_BYTES)
      bytes.writeUIntBE(clock(), 0, TIME_BYTES)
      randomBytes(RANDOM_BYTES).copy(bytes, TIME_BYTES)
      const id = bytes.toString('base64url')
      return `${id}.${sign(id)}`
    },
    verify(token) {
      // test() would convert a list of one token to its text.
      if (typeof token !== 'string' || !SHAPE.test(token)) {
        throw new StoreError('ONETRIP_INVALID_TOKEN', 'the token is malformed')
      }
      const id = token.slice(0, ID_LENGTH)
      given.write(token.slice(ID_LENGTH + 1), 'latin1')
      let genuine = false
      for (const sign of signers) {
        expected.write(sign(id), 'latin1')
        if (timingSafeEqual(expected, given)) genuine = true
      }
      const now = clock()
      const issuedAt = issueTimeOf(id)
      if (!genuine || issuedAt > now + CLOCK_SKEW_MS) {
        throw new StoreError('ONETRIP_INVALID_TOKEN', 'the token is not genuine')
      }
      if (now >= issuedAt + lifetimeMs) {
        throw new StoreError('ONETRIP_EXPIRED_TOKEN', 'the token has expired')
      }
      return id
    },
  }
}
