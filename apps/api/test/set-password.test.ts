import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmod,
  chown,
  readdir,
  readFile,
  readlink,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { expect, onTestFinished, test } from 'vitest'
import { UsersFile } from '../src/passwords/users-file.ts'

const program = fileURLToPath(new URL('../src/passwords/set-password.ts', import.meta.url))

/** Runs the command with this standard input, without a terminal. */
async function setPassword(args: string[], input = '') {
  const child = spawn(process.execPath, [program, ...args])
  child.stdin.on('error', () => {}) // the command may exit without reading
  child.stdin.end(input)
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ])
  return { code: code as number, stdout, stderr }
}

test('adds users and changes a password, without changing other lines', async () => {
  const path = join(await temporaryFolder(), 'users')
  expect(await setPassword([path, 'ada'], 'first password\n')).toEqual({
    code: 0,
    stdout: `Set the password of ada in ${path}.\n`,
    stderr: '',
  })
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  await writeFile(path, `\ufeff${await readFile(path, 'utf8')}# administrators\n`)
  await chmod(path, 0o640)
  const owner = process.getuid?.() === 0 ? 1000 : (process.getuid?.() ?? 0)
  await chown(path, owner, process.getgid?.() ?? 0) // as root: the file of another user
  expect((await setPassword([path, 'Zoe\u0308'], 'her password')).code).toBe(0)
  const changed = await setPassword([path, 'ada'], 'second password\r\n')
  expect(changed.code).toBe(0)

  const lines = (await readFile(path, 'utf8')).split('\n')
  expect(lines.map((line) => line.replace(/\$.*/, ''))).toEqual([
    'ada:',
    '# administrators',
    'Zo\u00eb:',
    '',
  ])
  const { mode, uid } = await stat(path)
  expect({ mode: mode & 0o777, uid }).toEqual({ mode: 0o640, uid: owner })
  const file = await UsersFile.open(path)
  expect(await file.verify('ada', 'second password')).toBe(true)
  expect(await file.verify('ada', 'first password')).toBe(false)
  expect(await file.verify('Zo\u00eb', 'her password')).toBe(true)
})

test('changes the target of a symbolic link', async () => {
  const folder = await temporaryFolder()
  const [path, link] = [join(folder, 'users'), join(folder, 'link')]
  await writeFile(path, '# users\n', { mode: 0o600 })
  await symlink('users', link)
  expect((await setPassword([link, 'ada'], 'a password')).code).toBe(0)
  expect(await readlink(link)).toBe('users')
  expect(await readFile(path, 'utf8')).toMatch(/^# users\nada:/)
})

test('concurrent runs lose no user', async () => {
  const path = join(await temporaryFolder(), 'users')
  const names = ['ada', 'bob', 'eve', 'joe', 'sue']
  const results = await Promise.all(names.map((name) => setPassword([path, name], 'a password')))
  const set = names.filter((_, index) => results[index]?.code === 0)
  expect(set.length).toBeGreaterThan(0)
  const lines = (await readFile(path, 'utf8')).trimEnd().split('\n')
  expect(lines.map((line) => line.split(':')[0]).sort()).toEqual(set)
})

test.each([
  [[], '', 'Usage:'],
  [['users', 'ada', 'a-password'], '', 'Usage:'],
  [['users', '#ada'], 'a password', 'must not be empty, start with #'],
  [['users', 'ada'], 'short', '8 to 256 characters'],
  [['users', 'ada'], 'x'.repeat(257), '8 to 256 characters'],
  [['users', 'ada'], '', 'no password was entered'],
  [['nowhere/users', 'ada'], 'a password', 'ENOENT'],
  [['malformed', 'ada'], '', 'malformed, line 1: no colon'],
  [['readable', 'ada'], 'a password', 'chmod 600'],
  [['dangling', 'ada'], 'a password', 'dangling is a symbolic link to a file that does not exist'],
  [['busy', 'ada'], 'a password', 'busy.new exists: another set-password'],
])('%j with input %j fails and changes nothing', async (args, input, words) => {
  const folder = await temporaryFolder()
  await writeFile(join(folder, 'malformed'), 'ada', { mode: 0o600 })
  await writeFile(join(folder, 'busy.new'), '')
  await symlink('missing', join(folder, 'dangling'))
  await writeFile(join(folder, 'readable'), '')
  await chmod(join(folder, 'readable'), 0o644)
  const before = await readdir(folder)
  const [name, ...more] = args
  const result = await setPassword(name === undefined ? [] : [join(folder, name), ...more], input)
  expect(result).toEqual({ code: 1, stdout: '', stderr: expect.stringContaining(words) })
  expect(result.stderr).not.toMatch(/a.password$/m)
  expect(await readdir(folder)).toEqual(before)
})

test('--help', async () => {
  expect(await setPassword(['--help'])).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('npm run set-password -- FILE NAME'),
  })
})

/** Runs the command in a terminal. `type` waits for a text on the screen, then types. */
function inTerminal(path: string) {
  const command = `'${process.execPath}' '${program}' '${path}' ada`
  const child = spawn('script', ['-qec', command, '/dev/null'])
  onTestFinished(() => void child.kill())
  let screen = ''
  child.stdout.on('data', (data: Buffer) => {
    screen += data
  })
  const ended = once(child, 'close')
  return {
    screen: () => screen,
    async type(after: string, keys: string) {
      await expect.poll(() => screen).toContain(after)
      child.stdin.write(keys)
    },
    code: async () => (await ended)[0] as number,
  }
}

// Needs `script` of util-linux; that of macOS has other options.
test.runIf(process.platform === 'linux')('in a terminal: typed twice, not shown', async () => {
  const path = join(await temporaryFolder(), 'users')
  const equal = inTerminal(path)
  await equal.type('Password for ada: ', 'my passwordd\x7f\r')
  await equal.type('Repeat the password: ', 'my password\r')
  expect(await equal.code()).toBe(0)
  expect(equal.screen()).toContain('Set the password of ada')
  expect(equal.screen()).not.toContain('my pass')
  expect(await (await UsersFile.open(path)).verify('ada', 'my password')).toBe(true)

  const different = inTerminal(path)
  await different.type('Password for ada: ', 'one password\r')
  await different.type('Repeat the password: ', 'another password\r')
  expect(await different.code()).toBe(1)
  expect(different.screen()).toContain('the two passwords differ')

  const interrupted = inTerminal(path)
  await interrupted.type('Password for ada: ', 'half a pass\x03')
  expect(await interrupted.code()).toBe(1)
  expect(interrupted.screen()).toContain('no password was entered')
  expect(await (await UsersFile.open(path)).verify('ada', 'my password')).toBe(true)
})
