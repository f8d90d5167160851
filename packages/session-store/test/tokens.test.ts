import { createHmac } from 'node:crypto'
import { expect, test, vi } from 'vitest'
import { createTokens, issuedAt } from '../src/core/tokens/tokens.ts'

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

test('a token with any one character changed is refused', () => {
  const tokens = createTokens({ secrets: [fresh] })
  const token = tokens.issue()
  // The last character of a signature of 32 bytes has two unused bits.
  for (let index = 0; index < token.length - 1; index++) {
    const other = token[index] === 'A' ? 'B' : 'A'
    const changed = token.slice(0, index) + other + token.slice(index + 1)
    expect(() => tokens.verify(changed), `character ${index}`).toThrow(
      /malformed|invalid signature/,
    )
    expect(tokens.verify(token)).toBe(token.split('.')[0]) // the cache keeps only valid tokens
  }
})

test.each(['', '.', 'abc', 'a'.repeat(76), `${'a'.repeat(32)}.${'a'.repeat(43)}`, '\0'.repeat(76)])(
  'refuses %j',
  (token) => {
    expect(() => createTokens({ secrets: [fresh] }).verify(token)).toThrow(
      expect.objectContaining({ code: 'ONETRIP_INVALID_TOKEN' }),
    )
  },
)

test('each verification uses the current time, even if the clock was changed', () => {
  const start = 1_000_000_000_000
  let now = start
  const tokens = createTokens({ secrets: [fresh], lifetimeSeconds: 60, clock: () => now })
  const token = tokens.issue()
  const id = tokens.verify(token)
  expect(tokens.expiresAt(id)).toBe(start + 60_000)
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
  expect(tokens.expiresAt(tokens.verify(plain))).toBe(now + 60_000)
  expect(tokens.expiresAt(tokens.verify(remembered))).toBe(now + 600_000)
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
