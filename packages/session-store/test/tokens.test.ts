import { expect, test } from 'vitest'
import { createTokens } from '../src/tokens.ts'

const old = 'old-secret-old-secret-old-secret-old'
const fresh = 'new-secret-new-secret-new-secret-new'

test('a token verifies to the id that is its first part', () => {
  const tokens = createTokens({ secrets: [fresh] })
  const token = tokens.issue()
  expect(tokens.verify(token)).toBe(token.split('.')[0])
  expect(tokens.issue()).not.toBe(token)
})

test('secrets rotate: the first signs, all verify', () => {
  const before = createTokens({ secrets: [old] }).issue()
  const rotated = createTokens({ secrets: [fresh, old] })
  expect(rotated.verify(before)).toBeTruthy()
  const after = rotated.issue()
  expect(() => createTokens({ secrets: [old] }).verify(after)).toThrow('not genuine')
})

test('every token that was changed in one character is refused', () => {
  const tokens = createTokens({ secrets: [fresh] })
  const token = tokens.issue()
  // The last character of a signature of 32 bytes carries two bits that decode to nothing.
  for (let index = 0; index < token.length - 1; index++) {
    const other = token[index] === 'A' ? 'B' : 'A'
    const changed = token.slice(0, index) + other + token.slice(index + 1)
    expect(() => tokens.verify(changed), `character ${index}`).toThrow(/malformed|not genuine/)
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

test('a token expires by its own time of issue', () => {
  let now = 1_000_000_000_000
  const tokens = createTokens({ secrets: [fresh], lifetimeSeconds: 60, clock: () => now })
  const token = tokens.issue()
  now += 59_999
  expect(tokens.expiresAt(tokens.verify(token))).toBe(1_000_000_060_000)
  now += 1
  expect(() => tokens.verify(token)).toThrow(
    expect.objectContaining({ code: 'ONETRIP_EXPIRED_TOKEN' }),
  )
})

test('a token from the future is not genuine', () => {
  const future = createTokens({ secrets: [fresh], clock: () => Date.now() + 120_000 }).issue()
  expect(() => createTokens({ secrets: [fresh] }).verify(future)).toThrow('not genuine')
})

test('short or missing secrets are refused', () => {
  expect(() => createTokens({ secrets: [] })).toThrow(TypeError)
  expect(() => createTokens({ secrets: [fresh, 'short'] })).toThrow(TypeError)
})
