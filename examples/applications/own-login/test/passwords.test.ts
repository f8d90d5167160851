import { describe, expect, test } from 'vitest'
import { hashPassword, MAX_RUNNING, MAX_WAITING, verifyPassword } from '../passwords.ts'

/** From Python's `hashlib.scrypt(b'password', salt=b'somesalt', n=1024, r=8, p=1, dklen=32)`. */
const REFERENCE = 'scrypt:1024:8:1:c29tZXNhbHQ=:wdXoWEig5T693O7BJbufEPRk+qarG40BYOh1xe9tMAc='

describe('a hash', () => {
  test('verifies its password and no other', async () => {
    const hash = await hashPassword('Mu\u0308ller-Stra\u00dfe')
    expect(hash).toMatch(/^scrypt:16384:8:5:[^:]{24}:[^:]{44}$/)
    expect(await hashPassword('Mu\u0308ller-Stra\u00dfe')).not.toBe(hash)
    expect(await verifyPassword('M\u00fcller-Stra\u00dfe', hash)).toBe(true) // composed otherwise
    expect(await verifyPassword('', hash)).toBe(false)
  })

  test('of another program verifies', async () => {
    expect(await verifyPassword('password', REFERENCE)).toBe(true)
    expect(await verifyPassword('passwort', REFERENCE)).toBe(false)
  })

  test.each([
    ['another kind', REFERENCE.replace('scrypt', 'bcrypt')],
    ['no key', REFERENCE.replace(/[^:]+$/, '')],
    ['a short key', REFERENCE.slice(0, -20)],
    ['no cost', REFERENCE.replace('1024', 'x')],
  ])('that is malformed is rejected without showing the hash: %s', async (_, hash) => {
    const verified = verifyPassword('password', hash)
    await expect(verified).rejects.toThrow()
    await expect(verified).rejects.not.toThrow('c29tZXNhbHQ')
  })
})

test('a user who does not exist has no password', async () => {
  expect(await verifyPassword('')).toBe(false)
})

test('a burst: a limited number of checks waits, the rest is rejected, and later ones work', async () => {
  const checks = Array.from({ length: 100 }, () => verifyPassword('password', REFERENCE))
  const settled = await Promise.allSettled(checks)
  const refused = settled.filter((one) => one.status === 'rejected')
  expect(refused).toHaveLength(100 - MAX_RUNNING - MAX_WAITING)
  for (const { reason } of refused) {
    expect(reason).toMatchObject({ code: 'API_OVERLOADED', statusCode: 503, retrySafe: true })
  }
  const malformed = REFERENCE.replace('1024', 'x')
  for (let count = 0; count < MAX_RUNNING; count += 1) {
    await expect(verifyPassword('password', malformed)).rejects.toThrow()
  }
  expect(await verifyPassword('password', REFERENCE)).toBe(true)
})
