import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { createTokens, isRemembered, issuedAt, type TokensOptions } from '../src/tokens/tokens.ts'

vi.mock('node:crypto', { spy: true }) // keeps the behaviour and counts the calls

const old = 'old-secret-old-secret-old-secret-old'
const fresh = 'new-secret-new-secret-new-secret-new'

// Issued before the cache was added, by a custom HMAC.
test.each([
  [fresh, 'AaH9jGkAXXIEzQydYIcwMCG_LSqTkRcY.4NCXGq60xnTY7teRREkLEGY9qJu816QRSyPjUShWbdo'],
  [
    'an-ümlaut-'.repeat(10), // longer than a block of SHA-256
    'AaH9jGkAa1AhtYt45_s-iX1B1Q_LB_U0.lqEXJVwvCWa6yJOwH5X13ER57kbMgXra1SNhGzpzIkA',
  ],
])('a token of an earlier version is valid', (secret, token) => {
  const tokens = createTokens({ secrets: [secret], clock: () => 1_795_255_300_000 })
  expect(tokens.verify(token)).toBe(token.split('.')[0])
})

test('the signature of a token is computed once', () => {
  const token = createTokens({ secrets: [fresh] }).issue()
  const tokens = createTokens({ secrets: [old, fresh] })
  tokens.verify(token)
  vi.mocked(createHmac).mockClear()
  for (let use = 0; use < 10; use++) expect(tokens.verify(token)).toBe(token.split('.')[0])
  expect(createHmac).not.toHaveBeenCalled()
})

test('secrets rotate: the first signs, all verify', () => {
  const before = createTokens({ secrets: [old] }).issue()
  const rotated = createTokens({ secrets: [fresh, old] })
  expect(rotated.verify(before)).toBeTruthy()
  const after = rotated.issue()
  expect(() => createTokens({ secrets: [old] }).verify(after)).toThrow('invalid signature')
})

test.each(['issued', 'renewed'])(
  'an %s token with any one character changed is refused',
  (kind) => {
    let now = Date.now()
    const tokens = createTokens({ secrets: [fresh], renewAfterSeconds: 60, clock: () => now })
    const issued = tokens.issue()
    now += 60_000
    const token = kind === 'issued' ? issued : tokens.renew(issued)
    // The last character of a signature of 32 bytes has two unused bits.
    for (let index = 0; index < token.length - 1; index++) {
      const other = token[index] === 'A' ? 'B' : 'A'
      const changed = token.slice(0, index) + other + token.slice(index + 1)
      expect(() => tokens.verify(changed), `character ${index}`).toThrow(
        /malformed|invalid signature/,
      )
      expect(tokens.verify(token)).toBe(token.split('.')[0]) // the cache keeps only valid tokens
    }
  },
)

test('each verification uses the current time, even if the clock was changed', () => {
  const start = 1_000_000_000_000
  let now = start
  const tokens = createTokens({ secrets: [fresh], lifetimeSeconds: 60, clock: () => now })
  const token = tokens.issue()
  const id = tokens.verify(token)
  expect(tokens.expiresAt(token)).toBe(start + 60_000)
  now = start - 120_000
  expect(() => tokens.verify(token)).toThrow('issued in the future')
  now = start + 60_000
  const expired = expect.objectContaining({ code: 'ONETRIP_EXPIRED_TOKEN' })
  expect(() => tokens.verify(token)).toThrow(expired)
  now = start + 59_999
  expect(tokens.verify(token)).toBe(id)
})

test('a remembered session has its own lifetime, in every process', () => {
  let now = 1_795_255_300_000
  const clock = () => now
  const options = { secrets: [fresh], lifetimeSeconds: 60, clock }
  const tokens = createTokens({ ...options, rememberedLifetimeSeconds: 600 })
  const [plain, remembered] = [tokens.issue(), tokens.issue(true)]
  expect(tokens.expiresAt(plain)).toBe(now + 60_000)
  expect(tokens.expiresAt(remembered)).toBe(now + 600_000)
  expect(issuedAt(tokens.verify(remembered))).toBe(now)
  now += 599_999
  const others = createTokens({ ...options, rememberedLifetimeSeconds: 600 })
  expect(() => others.verify(plain)).toThrow('expired')
  expect(others.verify(remembered)).toBe(remembered.split('.')[0])
  // A process without the option uses the shorter lifetime.
  expect(() => createTokens(options).verify(remembered)).toThrow('expired')
  now += 1
  for (const one of [tokens, others]) expect(() => one.verify(remembered)).toThrow('expired')
})

test('remember without its lifetime is refused, and so is a shorter lifetime', () => {
  expect(() => createTokens({ secrets: [fresh] }).issue(true)).toThrow(
    'remember needs the option tokens.rememberedLifetimeSeconds',
  )
  const options = { secrets: [fresh], lifetimeSeconds: 60, rememberedLifetimeSeconds: 59 }
  expect(() => createTokens(options)).toThrow('must be a number from 60')
})

const DAY = 86_400_000
const start = 1_795_255_300_000

/** Tokens that live for 30 days and are renewed after one, with a clock to set. */
function renewing(options: Partial<TokensOptions> = {}) {
  const time = { now: start }
  const clock = () => time.now
  const tokens = createTokens({ secrets: [fresh], renewAfterSeconds: 86_400, clock, ...options })
  return { time, tokens }
}

test('a renewed token has the same id and login time, and lives as long as a new one', () => {
  const { time, tokens } = renewing()
  const issued = tokens.issue()
  const id = tokens.verify(issued)
  time.now += DAY - 1
  expect(tokens.renew(issued)).toBe(issued)
  time.now += 1
  const renewed = tokens.renew(issued)
  // Another process has no cache.
  for (const { tokens: other } of [{ tokens }, renewing({ clock: () => time.now })]) {
    expect(other.verify(renewed)).toBe(id)
    expect(other.expiresAt(renewed)).toBe(start + 31 * DAY)
    expect(other.renew(renewed)).toBe(renewed)
    expect(other.expiresAt(issued)).toBe(start + 30 * DAY)
  }
  expect(issuedAt(id)).toBe(start)
  time.now = start + 30 * DAY
  expect(() => tokens.verify(issued)).toThrow('expired')
  expect(() => tokens.renew(issued)).toThrow('expired')
  const again = tokens.renew(renewed)
  time.now = start + 31 * DAY
  expect(() => tokens.verify(renewed)).toThrow('expired')
  expect(tokens.verify(again)).toBe(id)
})

test('without renewAfterSeconds no token is renewed, and renewed ones stay valid', () => {
  const { time, tokens } = renewing()
  const issued = tokens.issue()
  time.now += 2 * DAY
  const renewed = tokens.renew(issued)
  const off = createTokens({ secrets: [fresh], clock: () => time.now })
  expect([off.renews, tokens.renews]).toEqual([false, true])
  time.now += 2 * DAY
  expect([off.renew(issued), off.renew(renewed)]).toEqual([issued, renewed])
})

test('a session in use ends exactly maxLifetimeSeconds after its login', () => {
  fc.assert(
    fc.property(
      fc.boolean(),
      fc.array(fc.integer({ min: 1, max: 9 * DAY }), { minLength: 40, maxLength: 60 }),
      (remember, steps) => {
        const maxLifetimeSeconds = (100 * DAY) / 1000
        const rememberedLifetimeSeconds = (40 * DAY) / 1000
        const { time, tokens } = renewing({ maxLifetimeSeconds, rememberedLifetimeSeconds })
        let token = tokens.issue(remember)
        const id = tokens.verify(token)
        const lifetime = (remember ? 40 : 30) * DAY
        const end = start + 100 * DAY
        for (const step of steps) {
          time.now = Math.min(time.now + step, end - 1)
          const before = tokens.expiresAt(token)
          token = tokens.renew(token)
          expect(tokens.verify(token)).toBe(id)
          expect(isRemembered(token)).toBe(remember)
          const expiresAt = tokens.expiresAt(token)
          expect(expiresAt).toBeLessThanOrEqual(end)
          // Younger than a day, or renewed now: as long as the maximum allows.
          const due = time.now >= before - lifetime + DAY
          expect(expiresAt).toBe(due ? Math.min(time.now + lifetime, end) : before)
        }
        time.now = end
        expect(() => tokens.verify(token)).toThrow('expired')
      },
    ),
  )
})

test('a token that a process with a wrong clock renewed stays valid in the others', () => {
  const ahead = renewing()
  const right = renewing()
  const issued = ahead.tokens.issue()
  for (const time of [right.time, ahead.time]) time.now += DAY
  ahead.time.now += DAY / 24
  const renewed = ahead.tokens.renew(issued)
  expect(renewed).not.toBe(issued)
  expect(right.tokens.verify(renewed)).toBe(right.tokens.verify(issued))
  expect(right.tokens.renew(renewed)).toBe(renewed)
  // Not a login: its session exists nowhere else.
  const behind = renewing({ clock: () => start - DAY })
  for (const token of [issued, renewed]) {
    expect(() => behind.tokens.verify(token)).toThrow('issued in the future')
  }
})

test('maxLifetimeSeconds also limits tokens that were renewed before it was set', () => {
  const { time, tokens } = renewing()
  let token = tokens.issue()
  for (; time.now < start + 39 * DAY; time.now += DAY) token = tokens.renew(token)
  expect(tokens.expiresAt(token)).toBeGreaterThan(start + 60 * DAY)
  const limited = renewing({ clock: () => time.now, maxLifetimeSeconds: (40 * DAY) / 1000 }).tokens
  expect(limited.expiresAt(token)).toBe(start + 40 * DAY)
  time.now = start + 40 * DAY
  expect(() => limited.verify(token)).toThrow('expired')
})

test('a signature is valid only for its own time of renewal, and not for the id alone', () => {
  const { time, tokens } = renewing()
  const issued = tokens.issue()
  time.now += DAY
  const first = tokens.renew(issued)
  time.now += DAY
  const second = tokens.renew(first)
  const [id, , signature] = first.split('.')
  const [, later, other] = second.split('.')
  const [, own] = issued.split('.')
  for (const forged of [
    `${id}.${signature}`,
    `${id}.${later}.${signature}`,
    `${id}.${later}.${own}`,
    `${id}.${other}`,
    `${later}.${id}.${signature}`,
  ]) {
    expect(() => renewing({ clock: () => time.now }).tokens.verify(forged)).toThrow(
      expect.objectContaining({ code: 'ONETRIP_INVALID_TOKEN' }),
    )
  }
})

test.each([
  { renewAfterSeconds: 0 },
  { renewAfterSeconds: 30 * 86_400 + 1 },
  { renewAfterSeconds: Number.POSITIVE_INFINITY },
  { maxLifetimeSeconds: 30 * 86_400 - 1 },
  { maxLifetimeSeconds: 40 * 86_400, rememberedLifetimeSeconds: 41 * 86_400 },
])('refuses %o', (options) => {
  expect(() => renewing(options)).toThrow(TypeError)
})
