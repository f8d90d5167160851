import {
  createHmac,
  createSecretKey,
  type KeyObject,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto'
import { StoreError } from '../errors.ts'
import { checkRange } from '../range.ts'
import { BoundedCache } from './bounded-cache.ts'

export interface TokensOptions {
  /** At least one, of at least 32 characters: the first signs, all verify (so that they can rotate). */
  secrets: readonly string[]
  /** How long a token is good for, however much it is used: 1 s to 100 years. Default 30 days. */
  lifetimeSeconds?: number
  /** The same for `login(user, { remember: true })`. Default: such logins are refused. */
  rememberedLifetimeSeconds?: number
  /** Milliseconds since 1970. Default `Date.now`. */
  clock?: () => number
}

export interface Tokens {
  /**
   * A new token: `<id>.<signature>`.
   *
   * @throws StoreError `ONETRIP_INVALID_INPUT` for `remember` without `rememberedLifetimeSeconds`.
   */
  issue(remember?: boolean): string
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
const SIGNATURE_BYTES = 32
/** Of a generation of `BoundedCache`: with 200 to 250 bytes each, a cache takes 5 MB at most. */
const CACHED_TOKENS = 10_000
const CLOCK_SKEW_MS = 60_000
const MIN_SECRET_LENGTH = 32
const SECRETS_RULE = `tokens.secrets must be a list of one or more strings of at least ${MIN_SECRET_LENGTH} characters`
const MAX_LIFETIME_SECONDS = 100 * 365 * 24 * 3600

const isSecret = (secret: unknown) =>
  typeof secret === 'string' && secret.length >= MIN_SECRET_LENGTH

/** Added to the time of issue in the id of a remembered session: times do not need that bit until 6429. */
const REMEMBERED = 2 ** 47

/** What an id begins with: when it was issued, and whether the session is remembered. */
const stampOf = (id: string) => Buffer.from(id, 'base64url').readUIntBE(0, TIME_BYTES)
const issueTime = (stamp: number) => stamp % REMEMBERED

const signature = (id: string, key: KeyObject) => createHmac('sha256', key).update(id).digest()

/** When an id was issued, in Unix milliseconds; undefined when it cannot be one of ours. */
export const issuedAt = (id: string): number | undefined =>
  ID_SHAPE.test(id) ? issueTime(stampOf(id)) : undefined

/** @throws TypeError when there is no secret, one is too short, or another option is unusable. */
export function createTokens(options: TokensOptions): Tokens {
  const { secrets, lifetimeSeconds = 30 * 24 * 3600, clock = Date.now } = { ...options }
  const { rememberedLifetimeSeconds = lifetimeSeconds } = { ...options }
  if (!Array.isArray(secrets) || ![...secrets].every(isSecret)) throw new TypeError(SECRETS_RULE)
  checkRange('tokens.lifetimeSeconds', lifetimeSeconds, { min: 1, max: MAX_LIFETIME_SECONDS })
  checkRange('tokens.rememberedLifetimeSeconds', rememberedLifetimeSeconds, {
    min: lifetimeSeconds,
    max: MAX_LIFETIME_SECONDS,
  })
  if (typeof clock !== 'function') throw new TypeError('tokens.clock must be a function')
  const keys = secrets.map((secret) => createSecretKey(secret, 'utf8'))
  const [signingKey] = keys
  if (signingKey === undefined) throw new TypeError(SECRETS_RULE)
  const lifetimeMs = (stamp: number) =>
    1000 * (stamp >= REMEMBERED ? rememberedLifetimeSeconds : lifetimeSeconds)
  const given = Buffer.alloc(SIGNATURE_BYTES)

  /** @throws StoreError `ONETRIP_INVALID_TOKEN`. */
  function checkSignature(token: string): void {
    // test() would convert a list of one token to its text.
    if (typeof token !== 'string' || !SHAPE.test(token)) {
      throw new StoreError('ONETRIP_INVALID_TOKEN', 'the token is malformed')
    }
    const id = token.slice(0, ID_LENGTH)
    given.write(token.slice(ID_LENGTH + 1), 'base64url')
    let genuine = false
    for (const key of keys) if (timingSafeEqual(signature(id, key), given)) genuine = true
    if (!genuine) throw new StoreError('ONETRIP_INVALID_TOKEN', 'the token is not genuine')
  }

  /**
   * The stamps of tokens whose signature is known to be genuine; their expiry is checked each time.
   *
   * The key is the whole token, so only its owner finds it. The time of a lookup does not help to guess a
   * signature: a text is compared only with one of the same hash, which covers all characters and has a
   * random seed in each process. At most it shows that a token was used lately, to somebody who has it.
   */
  const genuineTokens = new BoundedCache<string, number>(CACHED_TOKENS)

  return {
    expiresAt(id) {
      const stamp = stampOf(id)
      return issueTime(stamp) + lifetimeMs(stamp)
    },
    issue(remember = false) {
      if (remember && options.rememberedLifetimeSeconds === undefined) {
        const message = 'remember needs the option tokens.rememberedLifetimeSeconds'
        throw new StoreError('ONETRIP_INVALID_INPUT', message)
      }
      const stamp = clock() + (remember ? REMEMBERED : 0)
      const bytes = Buffer.allocUnsafe(TIME_BYTES + RANDOM_BYTES)
      bytes.writeUIntBE(stamp, 0, TIME_BYTES)
      randomBytes(RANDOM_BYTES).copy(bytes, TIME_BYTES)
      const id = bytes.toString('base64url')
      const token = `${id}.${signature(id, signingKey).toString('base64url')}`
      genuineTokens.set(token, stamp)
      return token
    },
    verify(token) {
      let stamp = genuineTokens.get(token)
      if (stamp === undefined) {
        checkSignature(token)
        stamp = stampOf(token.slice(0, ID_LENGTH))
        genuineTokens.set(token, stamp)
      }
      const now = clock()
      const issuedAt = issueTime(stamp)
      if (issuedAt > now + CLOCK_SKEW_MS) {
        throw new StoreError('ONETRIP_INVALID_TOKEN', 'the token is not genuine')
      }
      if (now >= issuedAt + lifetimeMs(stamp)) {
        throw new StoreError('ONETRIP_EXPIRED_TOKEN', 'the token has expired')
      }
      return token.slice(0, ID_LENGTH)
    },
  }
}
