import { execFile } from 'node:child_process'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { clusterUserNames, passwordFile, userNames, writeUsers } from '../src/users.ts'

function folderForThisTest(): string {
  const folder = mkdtempSync(join(tmpdir(), 'onetrip-users-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)

test('passwords are generated once, readable by the owner only, and are not in the ACL file', async () => {
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
  writeFileSync(passwordFile(folder, 'api'), '') // by a crash
  await writeUsers(folder, acl)
  expect(readFileSync(passwordFile(folder, 'api'), 'utf8').trim()).toHaveLength(43)
})

test('servers that start at the same time have the same users', async () => {
  for (let round = 0; round < 5; round += 1) {
    const folder = folderForThisTest()
    const secrets = join(folder, 'secrets')
    const files = Array.from({ length: 6 }, (_, index) => join(folder, `${index}.acl`))
    await Promise.all(files.map((file) => writeUsers(secrets, file, true)))
    expect(new Set(files.map((file) => readFileSync(file, 'utf8'))).size).toBe(1)
    for (const user of [...userNames, ...clusterUserNames]) {
      expect(readdirSync(join(secrets, user))).toEqual(['redis-password'])
    }
  }
})

const run = promisify(execFile)

const scriptOf = (name: string) =>
  fileURLToPath(new URL(`../container/${name}.sh`, import.meta.url))

interface EntryPoint {
  args?: string[]
  node?: string
  env?: Record<string, string>
}

/** Runs the entry point of a container with a redis-server that prints its arguments. */
async function entryPoint(
  folder: string,
  { args = [], node = '', env }: EntryPoint = {},
): Promise<string[]> {
  const own = join(folder, `node-${node}`)
  mkdirSync(own, { recursive: true })
  writeFileSync(join(own, 'redis-server'), '#!/bin/sh\nprintf "%s\\n" "$@"\n', { mode: 0o755 })
  // Slow, so that nodes that start at the same time all find no secret.
  const head = '#!/bin/sh\nsleep 0.2\ncommand -p head "$@"\n'
  if (node !== '') writeFileSync(join(own, 'head'), head, { mode: 0o755 })
  const { stdout } = await run('sh', [scriptOf('entrypoint'), ...args], {
    env: {
      PATH: `${own}:${process.env.PATH}`,
      TMPDIR: own,
      CLUSTER_NODE: node,
      REDIS_SECRETS: join(folder, 'secrets'),
      REDIS_DATA: join(folder, 'data'),
      REDIS_SHARE: fileURLToPath(new URL('..', import.meta.url)),
      ...env,
    },
  })
  return stdout.trim().split('\n')
}

const after = (args: readonly string[], name: string) => args[args.indexOf(name) + 1] ?? ''

/** The content of the ACL file, with single spaces. */
const usersOf = (args: readonly string[]) =>
  readFileSync(after(args, '--aclfile'), 'utf8').replaceAll(/ +/g, ' ')

test('the entry point of a container writes the same users and passes its arguments last', async () => {
  const folder = folderForThisTest()
  const args = await entryPoint(folder, { args: ['--appendfsync', 'always'] })
  expect(args.slice(-2)).toEqual(['--appendfsync', 'always'])
  const secrets = join(folder, 'secrets')
  expect(readdirSync(secrets).sort()).toEqual(['api', 'exporter', 'operator'])
  expect(modeOf(passwordFile(secrets, 'api'))).toBe('640')
  expect(readFileSync(join(secrets, 'api', 'session-secrets'), 'utf8')).toMatch(/^[\w-]{43}$/)
  await writeUsers(secrets, join(folder, 'ours.acl'))
  expect(usersOf(args)).toBe(readFileSync(join(folder, 'ours.acl'), 'utf8').replaceAll(/ +/g, ' '))
})

test('containers of nodes that start at the same time have the same users and replication password', async () => {
  const folder = folderForThisTest()
  const nodes = ['redis-1', 'redis-2', 'redis-3', 'redis-4', 'redis-5', 'redis-6']
  const all = await Promise.all(nodes.map((node) => entryPoint(folder, { node })))
  const secrets = join(folder, 'secrets')
  await writeUsers(secrets, join(folder, 'ours.acl'), true)
  const ours = readFileSync(join(folder, 'ours.acl'), 'utf8').replaceAll(/ +/g, ' ')
  const names = ['default', 'api', 'operator', 'exporter', 'replication', 'cluster']
  expect([...ours.matchAll(/^user (\w+)/gm)].map(([, name]) => name)).toEqual(names)
  expect(ours).not.toContain('config|get') // which would show the password of replicas
  for (const [index, args] of all.entries()) {
    expect(usersOf(args)).toBe(ours)
    expect(after(args, '--dir')).toBe(join(folder, 'data', nodes[index] ?? ''))
    const settings = readFileSync(after(args, '--include'), 'utf8')
    expect(settings).toContain('\ncluster-enabled yes\n')
    expect(settings).toContain(`\ncluster-announce-human-nodename ${nodes[index]}\n`)
    const password = readFileSync(passwordFile(secrets, 'replication'), 'utf8').trim()
    expect(settings).toContain(`\nmasteruser replication\nmasterauth ${password}\n`)
  }
  expect(readdirSync(join(secrets, 'cluster'))).toEqual(['redis-password'])
})

/** Writes a password file for each user of a node of a cluster. */
function writePasswords(secrets: string, text: string) {
  for (const user of [...userNames, ...clusterUserNames]) {
    mkdirSync(join(secrets, user), { recursive: true })
    writeFileSync(passwordFile(secrets, user), text)
  }
}

test.each([...userNames, ...clusterUserNames])(
  'a container does not start without a password of the user %s',
  async (user) => {
    const folder = folderForThisTest()
    const secrets = join(folder, 'secrets')
    writePasswords(secrets, 'some-password')
    const file = passwordFile(secrets, user)
    const refused = async (problem: string) =>
      await expect(entryPoint(folder, { node: 'redis-1' })).rejects.toMatchObject({
        code: 1,
        stdout: '',
        stderr: expect.stringContaining(problem),
      })
    writeFileSync(file, ' \r\n')
    await refused(`${file} contains no password.`)
    // Tests may run as root, who can read every file, but no folder.
    rmSync(file)
    mkdirSync(join(file, 'content'), { recursive: true })
    await refused(`Cannot read the password in ${file}.`)
  },
)

test('a container ignores white space at the ends of passwords, as npm run redis does', async () => {
  const folder = folderForThisTest()
  const secrets = join(folder, 'secrets')
  writePasswords(secrets, ' \tsome-password \r\n\r\n')
  const args = await entryPoint(folder, { node: 'redis-1' })
  await writeUsers(secrets, join(folder, 'ours.acl'), true)
  expect(usersOf(args)).toBe(readFileSync(join(folder, 'ours.acl'), 'utf8').replaceAll(/ +/g, ' '))
  expect(readFileSync(after(args, '--include'), 'utf8')).toContain('\nmasterauth some-password\n')
})

test('a container writes the file of passwords that redis_exporter reads', async () => {
  const folder = folderForThisTest()
  const secrets = join(folder, 'secrets')
  writePasswords(secrets, 'with "quotes" and \\ in it\n')
  await entryPoint(folder, { env: { EXPORTED_SERVERS: 'redis:6379 redis-1:6379' } })
  const file = join(secrets, 'exporter', 'passwords.json')
  expect(modeOf(file)).toBe('640')
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({
    'redis://exporter@redis:6379': 'with "quotes" and \\ in it',
    'redis://exporter@redis-1:6379': 'with "quotes" and \\ in it',
  })
})

test('the health check of a container reads the password in the same way', async () => {
  const folder = folderForThisTest()
  writePasswords(folder, 'some-password\r\n')
  const answer = '#!/bin/sh\nif [ "$REDISCLI_AUTH" = "some-password" ]; then echo PONG; fi\n'
  writeFileSync(join(folder, 'redis-cli'), answer, { mode: 0o755 })
  const env = { PATH: `${folder}:${process.env.PATH}`, TMPDIR: folder, REDIS_SECRETS: folder }
  const check = async () => await run('bash', [scriptOf('healthcheck')], { env })
  expect(await check()).toEqual({ stdout: 'PONG\n', stderr: '' })
  writePasswords(folder, '\n')
  await expect(check()).rejects.toMatchObject({ code: 1, stdout: '' })
})
