import crypto from 'node:crypto'
import { chmod, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { passwordAuthenticator } from '../src/passwords/authenticator.ts'
import { hashPassword, MAX_RUNNING, MAX_WAITING, verifyPassword } from '../src/passwords/hash.ts'
import { UsersFile } from '../src/passwords/users-file.ts'

vi.mock('node:fs/promises', { spy: true }) // the real functions; a test can delay a call or make it fail

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

/** Spies on the real Argon2. */
function watchArgon2() {
  const { argon2 } = crypto
  const calls: crypto.Argon2Parameters[] = []
  let running = 0
  let most = 0
  const spy = vi.spyOn(crypto, 'argon2').mockImplementation((algorithm, parameters, callback) => {
    calls.push(parameters)
    running += 1
    most = Math.max(most, running)
    argon2(algorithm, parameters, (error, key) => {
      running -= 1
      callback(error, key)
    })
  })
  onTestFinished(() => spy.mockRestore())
  return { calls, mostAtOnce: () => most }
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
    ['must be $argon2id$', ''],
    ['must be $argon2id$', 'password'],
    ['must be $argon2id$', REFERENCE.replace('argon2id', 'argon2i')],
    ['must be $argon2id$', REFERENCE.replace('v=19', 'v=16')],
    ['must be $argon2id$', `${REFERENCE}\n`],
    ['memory 4194304; allowed: 1 to 262144', REFERENCE.replace('m=256', 'm=4194304')],
    ['passes 99; allowed: 1 to 20', REFERENCE.replace('t=2', 't=99')],
    ['parallelism 0; allowed: 1 to 16', REFERENCE.replace('p=2', 'p=0')],
    ['less than 8 KiB of memory', REFERENCE.replace('m=256', 'm=15')],
  ])('that is malformed is rejected without showing the hash: %s', async (words, hash) => {
    const verified = verifyPassword('password', hash)
    await expect(verified).rejects.toThrow(words)
    await expect(verified).rejects.not.toThrow('bQk8UB')
  })

  test('a burst: two are computed at a time, a limited number waits, and the rest is rejected', async () => {
    const argon2 = watchArgon2()
    const checks = Array.from({ length: 100 }, () => verifyPassword('password', CHEAP))
    const settled = await Promise.allSettled(checks)
    const refused = settled.filter(({ status }) => status === 'rejected')
    expect(refused).toHaveLength(100 - MAX_RUNNING - MAX_WAITING)
    for (const { reason } of refused as PromiseRejectedResult[]) {
      expect(reason).toMatchObject({ code: 'API_OVERLOADED', statusCode: 503, retrySafe: true })
    }
    expect(argon2.mostAtOnce()).toBe(MAX_RUNNING)
    expect(argon2.calls).toHaveLength(MAX_RUNNING + MAX_WAITING)
    expect(await verifyPassword('password', CHEAP)).toBe(true) // after the burst
  })
})

const unexpected = (error: Error) => {
  throw error
}

/** Writes a users file for this test, and returns its path. */
async function usersFile(text: string | Uint8Array, mode = 0o600): Promise<string> {
  const path = join(await temporaryFolder(), 'users')
  await writeFile(path, text)
  await chmod(path, mode)
  return path
}

/** Replaces the users file atomically, like set-password. */
async function replace(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text, { mode: 0o600 })
  await rename(`${path}.new`, path)
}

/** Delays the result of the next `readFile` until `release` is called. */
function holdNextRead() {
  const started = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  vi.mocked(readFile).mockImplementationOnce(async (path) => {
    const bytes = await readFile(path)
    started.resolve()
    await released.promise
    return bytes
  })
  return { started: started.promise, release: released.resolve }
}

describe('a users file', () => {
  test('may have comments, empty lines, Windows line ends and any name', async () => {
    const lines = [
      '# the users',
      '',
      `ada:${REFERENCE}`,
      `o:brien: x:${CHEAP}`,
      `Zoe\u0308:${CHEAP}`,
    ]
    const path = await usersFile(`\ufeff${lines.join('\r\n')}`, 0o640)
    const authenticator = await passwordAuthenticator(path, unexpected)
    const user = (name: string) => authenticator.authenticate({ user: name, password: 'password' })
    expect(await user('ada')).toBe('ada')
    expect(await user('o:brien: x')).toBe('o:brien: x')
    expect(await user('Zo\u00eb')).toBe('Zo\u00eb')
    expect(authenticator.claimedUser({ user: 'Zoe\u0308', password: '' })).toBe('Zo\u00eb')
    for (const unknown of ['Ada', '# the users', '', 'eve']) {
      expect(await user(unknown), unknown).toBeUndefined()
    }
    expect(await authenticator.authenticate({ user: 'ada', password: 'x' })).toBeUndefined()
  })

  test.each([
    ['line 1: no colon', 'ada'],
    ['line 3: the hash must be', `# a\nada:${CHEAP}\nbob:secret`],
    ['line 2: duplicate user "ada"', `ada:${CHEAP}\nada:${CHEAP}`],
    ['line 2: duplicate user "Zo\u00eb"', `Zoe\u0308:${CHEAP}\nZo\u00eb:${CHEAP}`],
    ['line 1: a user name must not be empty', `:${CHEAP}`],
    ['line 1: a user name must not', ` ada:${CHEAP}`],
    ['line 1: a user name must have at most 128', `a\u202ea:${CHEAP}`],
    ['line 1: a user name must have at most 128', `${'a'.repeat(129)}:${CHEAP}`],
    ['is not UTF-8', new Uint8Array([0xff, 0xfe, 0x3a])],
  ])('that is malformed is rejected: %s', async (words, text) => {
    const path = await usersFile(text)
    await expect(UsersFile.open(path)).rejects.toThrow(words)
    await expect(UsersFile.open(path)).rejects.toThrow(path)
    await expect(UsersFile.open(path)).rejects.not.toThrow(/secret|c2FsdHNhbHQ/)
  })

  test.each(['644', '602', '601', '777'])('with mode %s is rejected', async (mode) => {
    const path = await usersFile(`ada:${CHEAP}`, Number.parseInt(mode, 8))
    await expect(UsersFile.open(path)).rejects.toThrow(`${path} is accessible to all users`)
  })

  test('must exist and be a file', async () => {
    await expect(UsersFile.open('/nowhere/users')).rejects.toThrow('/nowhere/users')
    const folder = await temporaryFolder()
    await expect(UsersFile.open(folder)).rejects.toThrow(`${folder} is not a file`)
  })

  test.each([
    ['a cheap hash', `ada:${CHEAP}`],
    ['an expensive one', `ada:${REFERENCE}`],
    ['no user', ''],
  ])('with %s: users who do not exist take as much work as users who do', async (_, text) => {
    const authenticator = await passwordAuthenticator(await usersFile(text), unexpected)
    const { calls } = watchArgon2()
    for (const user of ['ada', 'eve', 'eve']) {
      await authenticator.authenticate({ user, password: 'wrong' })
    }
    const costs = calls.map(({ message, nonce, ...cost }) => cost)
    expect(costs).toHaveLength(3)
    expect(costs).toEqual([costs[0], costs[0], costs[0]])
  })

  test('the password of another user is not valid for a user who does not exist', async () => {
    const path = await usersFile(`ada:${CHEAP}`)
    const authenticator = await passwordAuthenticator(path, unexpected)
    expect(await authenticator.authenticate({ user: 'eve', password: 'password' })).toBeUndefined()
  })

  test('is read again when it has changed; an invalid file changes nothing', async () => {
    const path = await usersFile(`ada:${CHEAP}`)
    const problems: string[] = []
    const authenticator = await passwordAuthenticator(path, ({ message }) => problems.push(message))
    const user = (name: string) => authenticator.authenticate({ user: name, password: 'password' })
    expect([await user('ada'), await user('bob')]).toEqual(['ada', undefined])

    await replace(path, `bob:${CHEAP}`)
    expect([await user('ada'), await user('bob')]).toEqual([undefined, 'bob'])

    await writeFile(path, `ada:${CHEAP}\nbob`)
    expect([await user('ada'), await user('bob')]).toEqual([undefined, 'bob'])
    expect(problems).toEqual([expect.stringContaining('line 2: no colon')])

    await rename(path, `${path}.old`)
    expect([await user('ada'), await user('bob')]).toEqual([undefined, 'bob'])
    expect(problems).toHaveLength(2)
    expect(problems[1]).toContain('ENOENT')

    await rename(`${path}.old`, path)
    await chmod(path, 0o644)
    expect([await user('ada'), await user('bob')]).toEqual([undefined, 'bob'])
    expect(problems[2]).toContain('chmod 600')

    await chmod(path, 0o600)
    await writeFile(path, `ada:${CHEAP}`)
    expect([await user('ada'), await user('bob')]).toEqual(['ada', undefined])
    expect(problems).toHaveLength(3)
  })

  test('is read at the next login after a failed read', async () => {
    const path = await usersFile(`ada:${CHEAP}`)
    const problems: string[] = []
    const authenticator = await passwordAuthenticator(path, ({ message }) => problems.push(message))
    const ada = () => authenticator.authenticate({ user: 'ada', password: 'password' })
    await replace(path, `bob:${CHEAP}`)
    vi.mocked(readFile).mockRejectedValueOnce(new Error('EMFILE: too many open files'))
    expect(await ada()).toBe('ada')
    expect(problems).toEqual([expect.stringContaining('EMFILE')])
    expect(await ada()).toBeUndefined()
    expect(problems).toHaveLength(1)
  })

  test.each([
    ['that has changed', false],
    ['that changes again while it is read', true],
  ])('%s: a login waits for the read, and uses the newest users', async (_, again) => {
    const path = await usersFile(`ada:${CHEAP}`)
    const authenticator = await passwordAuthenticator(path, unexpected)
    const user = (name: string) => authenticator.authenticate({ user: name, password: 'password' })
    const read = holdNextRead()
    await replace(path, again ? `ada:${CHEAP}\nbob:${CHEAP}` : `bob:${CHEAP}`)
    const slow = user('bob')
    await read.started
    if (again) await replace(path, `bob:${CHEAP}`)
    const removed = user('ada')
    // If the login did not wait for the read, it would end before this hash is computed.
    await Promise.race([removed, hashPassword('password')])
    read.release()
    expect(await removed).toBeUndefined()
    expect(await slow).toBe('bob')
    expect(await user('ada')).toBeUndefined()
  })

  test('is not copied for each unknown name', async () => {
    const file = await UsersFile.open(await usersFile(`ada:${CHEAP}`))
    const values = vi.spyOn(Map.prototype, 'values')
    onTestFinished(() => values.mockRestore())
    await file.verify('eve', 'password')
    const copied = values.mock.contexts.filter((map) => (map as Map<unknown, unknown>).has('ada'))
    expect(copied).toEqual([])
  })
})

test('startup fails on a version of Node without Argon2', async () => {
  const { argon2 } = crypto
  Object.assign(crypto, { argon2: undefined })
  onTestFinished(() => void Object.assign(crypto, { argon2 }))
  const started = passwordAuthenticator(await usersFile(`ada:${CHEAP}`), unexpected)
  await expect(started).rejects.toThrow('need Node 24.7 or newer')
})
