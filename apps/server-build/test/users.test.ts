import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { ioThreadsFor } from '../src/io-threads.ts'
import { aclFile, passwordFile, userNames, writeUsers } from '../src/users.ts'

const template = readFileSync(new URL('../users.acl', import.meta.url), 'utf8')

function folderForThisTest(): string {
  const folder = mkdtempSync(join(tmpdir(), 'onetrip-users-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)

test('an ACL file has one line for each user, and no comment', () => {
  const text = '# why\nuser a on\n +get\n # more\n +set\n\nuser b off #@B_HASH@\n'
  expect(aclFile(text, new Map([['B_HASH', 'ff']]))).toBe('user a on +get +set\nuser b off #ff\n')
})

test('a value that nothing gives is an error', () => {
  expect(() => aclFile(template, new Map())).toThrow('@API_PASSWORD_SHA256@')
})

test('passwords are made once, for their owner only, and are not in the ACL file', async () => {
  const folder = folderForThisTest()
  const acl = join(folder, 'users.acl')
  await writeUsers(folder, acl)
  const first = readFileSync(acl, 'utf8')
  for (const user of userNames) {
    const path = passwordFile(folder, user)
    expect(modeOf(path)).toBe('600')
    const password = readFileSync(path, 'utf8').trim()
    expect(password).toMatch(/^[\w-]{43}$/)
    expect(first).not.toContain(password)
  }
  expect(modeOf(acl)).toBe('600')
  await writeUsers(folder, acl)
  expect(readFileSync(acl, 'utf8')).toBe(first)
})

test('a password file that a crash left empty is made again', async () => {
  const folder = folderForThisTest()
  await writeUsers(folder, join(folder, 'users.acl'))
  writeFileSync(passwordFile(folder, 'api'), '')
  await writeUsers(folder, join(folder, 'users.acl'))
  expect(readFileSync(passwordFile(folder, 'api'), 'utf8').trim()).toHaveLength(43)
})

/** Runs a container's entry point where `nproc` says so many cores and redis-server prints its arguments. */
function entryPoint(folder: string, cores: number, ...args: string[]): string[] {
  writeFileSync(join(folder, 'nproc'), `#!/bin/sh\necho ${cores}\n`, { mode: 0o755 })
  writeFileSync(join(folder, 'redis-server'), '#!/bin/sh\nprintf "%s\\n" "$@"\n', { mode: 0o755 })
  const script = fileURLToPath(new URL('../container/entrypoint.sh', import.meta.url))
  const output = execFileSync('sh', [script, ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    env: {
      PATH: `${folder}:${process.env.PATH}`,
      TMPDIR: folder,
      REDIS_SECRETS: join(folder, 'secrets'),
      REDIS_SHARE: fileURLToPath(new URL('..', import.meta.url)),
    },
  })
  return output.trim().split('\n')
}

test("a container's entry point gives Redis as many I/O threads as npm run redis does", () => {
  const folder = folderForThisTest()
  for (const cores of [1, 2, 3, 4, 5, 6, 8, 15, 16, 17, 18, 64]) {
    const args = entryPoint(folder, cores)
    expect(args[args.indexOf('--io-threads') + 1], `${cores} cores`).toBe(`${ioThreadsFor(cores)}`)
  }
})

test("a container's entry point makes the same users, and what it is given comes last", async () => {
  const folder = folderForThisTest()
  const args = entryPoint(folder, 2, '--appendfsync', 'always')
  expect(args.slice(-2)).toEqual(['--appendfsync', 'always'])
  const acl = args[args.indexOf('--aclfile') + 1] ?? ''
  const theirs = readFileSync(acl, 'utf8').replaceAll(/ +/g, ' ')
  const secrets = join(folder, 'secrets')
  expect(modeOf(passwordFile(secrets, 'api'))).toBe('640')
  expect(readFileSync(join(secrets, 'api', 'session-secrets'), 'utf8')).toMatch(/^[\w-]{43}$/)
  await writeUsers(secrets, join(folder, 'ours.acl'))
  expect(theirs).toBe(readFileSync(join(folder, 'ours.acl'), 'utf8').replaceAll(/ +/g, ' '))
})
