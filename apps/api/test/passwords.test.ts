import crypto from 'node:crypto'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { hashPassword, MAX_RUNNING, MAX_WAITING, verifyPassword } from '../src/passwords.ts'

/** From the argon2 program of the reference implementation, for `password` with the salt `somesalt`. */
const REFERENCE =
  '$argon2id$v=19$m=256,t=2,p=2$c29tZXNhbHQ$bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc'
/** The same password with minimal cost, for tests with many hashes. */
const CHEAP = cheapHash('password')

function cheapHash(password: string): string {
  const nonce = Buffer.from('saltsalt')
  const parameters = { message: password, nonce, memory: 8, passes: 1, parallelism: 1 }
  const key = crypto.argon2Sync('argon2id', { ...parameters, tagLength: 16 })
  const base64 = (bytes: Buffer) => bytes.toString('base64').replaceAll('=', '')
  return `$argon2id$v=19$m=8,t=1,p=1$${base64(nonce)}$${base64(key)}`
}

describe('a hash', () => {
  test('verifies its password and no other', async () => {
    const hash = await hashPassword('correct horse')
    expect(hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[^$]{22}\$[^$]{43}$/)
    expect(await hashPassword('correct horse')).not.toBe(hash)
    expect(await verifyPassword('correct horse', hash)).toBe(true)
    expect(await verifyPassword('correct horsf', hash)).toBe(false)
    expect(await verifyPassword('', hash)).toBe(false)
  })

  test('of another program verifies', async () => {
    expect(await verifyPassword('password', REFERENCE)).toBe(true)
    expect(await verifyPassword('passwort', REFERENCE)).toBe(false)
  })

  test('does not depend on the Unicode composition of letters', async () => {
    const hash = await hashPassword('Mu\u0308ller-Stra\u00dfe')
    expect(await verifyPassword('M\u00fcller-Stra\u00dfe', hash)).toBe(true)
  })

  test.each([
    ['must be $argon2id$', 'password'],
    ['must be $argon2id$', REFERENCE.replace('argon2id', 'argon2i')],
    ['memory 4194304; allowed: 1 to 262144', REFERENCE.replace('m=256', 'm=4194304')],
    ['passes 99; allowed: 1 to 20', REFERENCE.replace('t=2', 't=99')],
    ['parallelism 0; allowed: 1 to 16', REFERENCE.replace('p=2', 'p=0')],
  ])('that is malformed is rejected without showing the hash: %s', async (words, hash) => {
    const verified = verifyPassword('password', hash)
    await expect(verified).rejects.toThrow(words)
    await expect(verified).rejects.not.toThrow('bQk8UB')
  })

  test('a burst: two are computed at a time, a limited number waits, and the rest is rejected', async () => {
    const { argon2 } = crypto
    let running = 0
    let mostAtOnce = 0
    const spy = vi.spyOn(crypto, 'argon2').mockImplementation((algorithm, parameters, callback) => {
      mostAtOnce = Math.max(mostAtOnce, ++running)
      argon2(algorithm, parameters, (error, key) => {
        running -= 1
        callback(error, key)
      })
    })
    onTestFinished(() => spy.mockRestore())
    const checks = Array.from({ length: 100 }, () => verifyPassword('password', CHEAP))
    const settled = await Promise.allSettled(checks)
    const refused = settled.filter((one) => one.status === 'rejected')
    expect(refused).toHaveLength(100 - MAX_RUNNING - MAX_WAITING)
    for (const { reason } of refused) {
      expect(reason).toMatchObject({ code: 'API_OVERLOADED', statusCode: 503, retrySafe: true })
    }
    expect(mostAtOnce).toBe(MAX_RUNNING)
    expect(spy).toHaveBeenCalledTimes(MAX_RUNNING + MAX_WAITING)
    expect(await verifyPassword('password', CHEAP)).toBe(true) // after the burst
  })
})

test('a version of Node without Argon2 is rejected', async () => {
  const { argon2 } = crypto
  Object.assign(crypto, { argon2: undefined })
  onTestFinished(() => void Object.assign(crypto, { argon2 }))
  await expect(hashPassword('password')).rejects.toThrow('need Node 24.7 or newer')
})
