import {
  createHmac,
  createSecretKey,
  type KeyObject,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto'
import { StoreError } from '../errors.ts'
import { checkedOptions, checkRange } from '../input.ts'
import { BoundedCache } from './bounded-cache.ts'

export interface TokensOptions {
  /** One or more, each of at least 32 characters. The first signs, all verify, so that you can rotate them. */
  secrets: readonly string[]
  /** How long a token is valid, even if it is used: 1 s to 100 years. Default 30 days. */
  lifetimeSeconds?: number
  /** The lifetime for `login(user, { remember: true })`. Default: such logins are rejected. */
  rememberedLifetimeSeconds?: number
  /**
   * Lets sessions in use live on: the plugins replace the token in the cookie once it is older than this; `renewToken`
   * does it for other clients. The new token lives as long as one of a login, and the old one stays valid until its own
   * expiry. At most `lifetimeSeconds`. Set it only when all processes know it: older ones reject renewed tokens.
   * Default: no renewal.
   */
  renewAfterSeconds?: number
  /**
   * How long after its login a session ends even if its token is renewed, or was before this option was set. At least
   * the longest lifetime. Default `Infinity`.
   */
  maxLifetimeSeconds?: number
  /** Returns milliseconds since 1970. Default `Date.now`. */
  clock?: () => number
}

export interface Tokens {
  /**
   * A new token, `<id>.<signature>`, with the time of issue in the id. A renewed one is `<id>.<time>.<signature>`.
   *
   * @throws StoreError `ONETRIP_INVALID_INPUT` for `remember` without `rememberedLifetimeSeconds`.
   */
  issue(remember?: boolean): string
  /**
   * Returns the session id of a valid token. Redis holds only this id.
   *
   * @throws StoreError `ONETRIP_INVALID_TOKEN` (malformed or forged) or `ONETRIP_EXPIRED_TOKEN`.
   */
  verify(token: string): string
  /**
   * When the token expires, in milliseconds since 1970.
   *
   * @throws StoreError as `verify`.
   */
  expiresAt(token: string): number
  /** Whether `renew` ever returns another token. */
  readonly renews: boolean
  /**
   * A token with the same id that expires later; the same token if it is not older than `renewAfterSeconds`, or cannot
   * live longer.
   *
   * @throws StoreError as `verify`.
   */
  renew(token: string): string
}

const TIME_BYTES = 6
const RANDOM_BYTES = 18 // 144 bits; with the time 24 bytes, which base64url encodes without padding
const STAMP_LENGTH = (TIME_BYTES * 4) / 3
const ID_LENGTH = ((TIME_BYTES + RANDOM_BYTES) * 4) / 3
const ID_PATTERN = new RegExp(`^[A-Za-z0-9_-]{${ID_LENGTH}}$`)
// 43 characters encode two bits more than a signature has. Only the canonical encoding, with 0 bits, is valid.
const TOKEN_PATTERN = new RegExp(
  `^[A-Za-z0-9_-]{${ID_LENGTH}}(?:\\.[A-Za-z0-9_-]{${STAMP_LENGTH}})?\\.[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$`,
)
const SIGNATURE_BYTES = 32
const SIGNATURE_LENGTH = 43
/** The size of a generation of `BoundedCache`. At 250 to 300 bytes per entry, the cache takes 6 MB at most. */
const CACHED_TOKENS = 10_000
const CLOCK_SKEW_MS = 60_000
const MIN_SECRET_LENGTH = 32
const SECRETS_RULE = `tokens.secrets must be a list of one or more strings of at least ${MIN_SECRET_LENGTH} characters`
const MAX_LIFETIME_SECONDS = 100 * 365 * 24 * 3600

const isSecret = (secret: unknown) =>
  typeof secret === 'string' && secret.length >= MIN_SECRET_LENGTH

/** Flag bit in the time of issue of a remembered session. Times do not use this bit until the year 6429. */
const REMEMBERED = 2 ** 47

interface Life {
  readonly begunAt: number
  readonly expiresAt: number
}

/** The time of issue with the flag REMEMBERED: the first bytes of an id. A renewed token also has one of its own. */
const stampOf = (text: string) =>
  Buffer.from(text.slice(0, STAMP_LENGTH), 'base64url').readUIntBE(0, TIME_BYTES)
const issueTime = (stamp: number) => stamp % REMEMBERED

function stampText(stamp: number): string {
  const bytes = Buffer.allocUnsafe(TIME_BYTES)
  bytes.writeUIntBE(stamp, 0, TIME_BYTES)
  return bytes.toString('base64url')
}

/** What the signature signs: the id, or the id and the time of renewal. */
const signedPart = (token: string) => token.slice(0, -SIGNATURE_LENGTH - 1)
const stampOfToken = (token: string) => stampOf(signedPart(token).slice(ID_LENGTH + 1) || token)

/** Whether the session of a verified token was started with `remember`. */
export const isRemembered = (token: string): boolean => stampOf(token) >= REMEMBERED

const signature = (signed: string, key: KeyObject) =>
  createHmac('sha256', key).update(signed).digest()

/** When an id was issued, in milliseconds since 1970; undefined if it does not look like the id of a token. */
export const issuedAt = (id: string): number | undefined =>
  ID_PATTERN.test(id) ? issueTime(stampOf(id)) : undefined

const DEFAULTS = {
  secrets: undefined,
  lifetimeSeconds: 30 * 24 * 3600,
  rememberedLifetimeSeconds: undefined,
  renewAfterSeconds: undefined,
  maxLifetimeSeconds: Number.POSITIVE_INFINITY,
  clock: Date.now,
}

const kinds = {
  lifetimeSeconds: { min: 1, max: MAX_LIFETIME_SECONDS },
  clock: 'function',
} as const

/** @throws TypeError if there is no secret, a secret is too short, or another option is invalid. */
export function createTokens(options: TokensOptions): Tokens {
  // JavaScript callers may omit the options: the error is that of the secrets.
  const checked = checkedOptions('tokens', options || {}, DEFAULTS, kinds)
  const { secrets, lifetimeSeconds, renewAfterSeconds, maxLifetimeSeconds, clock } = checked
  const { rememberedLifetimeSeconds = lifetimeSeconds } = checked
  if (!Array.isArray(secrets) || ![...secrets].every(isSecret)) throw new TypeError(SECRETS_RULE)
  checkRange('tokens.rememberedLifetimeSeconds', rememberedLifetimeSeconds, {
    min: lifetimeSeconds,
    max: MAX_LIFETIME_SECONDS,
  })
  if (renewAfterSeconds !== undefined) {
    checkRange('tokens.renewAfterSeconds', renewAfterSeconds, { min: 1, max: lifetimeSeconds })
  }
  checkRange('tokens.maxLifetimeSeconds', maxLifetimeSeconds, { min: rememberedLifetimeSeconds })
  const keys = secrets.map((secret) => createSecretKey(secret, 'utf8'))
  const [signingKey] = keys
  if (signingKey === undefined) throw new TypeError(SECRETS_RULE)
  const lifetimeMs = (stamp: number) =>
    1000 * (stamp >= REMEMBERED ? rememberedLifetimeSeconds : lifetimeSeconds)
  const given = Buffer.alloc(SIGNATURE_BYTES)

  /** @throws StoreError `ONETRIP_INVALID_TOKEN`. */
  function checkSignature(token: string): void {
    // Without the check of the type, test() would accept an array of one token.
    if (typeof token !== 'string' || !TOKEN_PATTERN.test(token)) {
      throw new StoreError('ONETRIP_INVALID_TOKEN', 'the token is malformed')
    }
    given.write(token.slice(-SIGNATURE_LENGTH), 'base64url')
    const signed = signedPart(token)
    let isValid = false
    for (const key of keys) if (timingSafeEqual(signature(signed, key), given)) isValid = true
    if (!isValid)
      throw new StoreError('ONETRIP_INVALID_TOKEN', 'the token has an invalid signature')
  }

  /**
   * Verified token → its expiry. The expiry is checked each time.
   *
   * The key is the whole token. The lookup time reveals nothing about signatures: V8 compares strings only if
   * their hashes are equal, and the hash covers all characters and has a random seed per process. At most it
   * shows the owner of a token that the token was used recently.
   */
  const verifiedTokens = new BoundedCache<string, Life>(CACHED_TOKENS)

  const sign = (signed: string): string => {
    const token = `${signed}.${signature(signed, signingKey).toString('base64url')}`
    verifiedTokens.set(token, lifeOf(token))
    return token
  }

  /** When the session of a token began, and when the token expires. */
  function lifeOf(token: string): Life {
    const stamp = stampOfToken(token)
    const begunAt = issueTime(stampOf(token))
    const latest = begunAt + 1000 * maxLifetimeSeconds
    return { begunAt, expiresAt: Math.min(issueTime(stamp) + lifetimeMs(stamp), latest) }
  }

  /**
   * Returns when a valid token expires. A process whose clock is ahead may have renewed it in the future of this one: the
   * session must not end because of that, and the renewal adds at most one lifetime, since that process accepted the
   * token before.
   */
  function check(token: string): number {
    let life = verifiedTokens.get(token)
    if (life === undefined) {
      checkSignature(token)
      life = lifeOf(token)
      verifiedTokens.set(token, life)
    }
    const now = clock()
    if (life.begunAt > now + CLOCK_SKEW_MS) {
      throw new StoreError('ONETRIP_INVALID_TOKEN', 'the token was issued in the future')
    }
    if (now >= life.expiresAt) {
      throw new StoreError('ONETRIP_EXPIRED_TOKEN', 'the token has expired')
    }
    return life.expiresAt
  }

  return {
    renews: renewAfterSeconds !== undefined,
    expiresAt: check,
    issue(remember = false) {
      if (remember && checked.rememberedLifetimeSeconds === undefined) {
        const message = 'remember needs the option tokens.rememberedLifetimeSeconds'
        throw new StoreError('ONETRIP_INVALID_INPUT', message)
      }
      const stamp = clock() + (remember ? REMEMBERED : 0)
      return sign(stampText(stamp) + randomBytes(RANDOM_BYTES).toString('base64url'))
    },
    verify(token) {
      check(token)
      return token.slice(0, ID_LENGTH)
    },
    renew(token) {
      check(token)
      const stamp = stampOfToken(token)
      const now = clock()
      if (now < issueTime(stamp) + 1000 * (renewAfterSeconds ?? Number.POSITIVE_INFINITY))
        return token
      // A token whose stamp is the latest one expires exactly `maxLifetimeSeconds` after the login.
      const first = stampOf(token)
      const latest = first + 1000 * maxLifetimeSeconds - lifetimeMs(first)
      const renewed = Math.min(now + first - issueTime(first), latest)
      if (renewed <= stamp) return token
      return sign(`${token.slice(0, ID_LENGTH)}.${stampText(renewed)}`)
    },
  }
}
