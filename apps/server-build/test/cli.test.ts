import { chmod, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { writeUsers } from '../src/users.ts'
import { tinyRedis } from './tiny-redis.ts'

const wrongUsage: [args: string[], message: string][] = [
  [['build', 'fastest'], 'Allowed choices are patched, stock, baseline'],
  [['build', '--sha256', 'ab'.repeat(32)], '--sha256 requires --source'],
  [['run', '--port', '65536'], 'a whole number from 0 to 65535'],
  [['run', '--', 'appendonly', 'no'], 'must begin with a setting'],
  [['build', '--', '--port', '2'], "'build' takes no arguments after --"],
]

test.each(wrongUsage)(
  'wrong usage %j exits with 2 and names the mistake',
  async (args, message) => {
    const tiny = await tinyRedis()
    const { code, stderr } = await tiny.run(args)
    expect(stderr).toContain(message)
    expect(code).toBe(2)
  },
)

test('REDIS_SERVER runs an installed server, with a note that it is not our build', async () => {
  const tiny = await tinyRedis()
  const server = join(tiny.directory, 'redis-server')
  const script =
    '#!/bin/sh\n[ "$1" = --version ] && echo "Redis server v=7.0.15 sha=0" || echo "$@"\n'
  await writeFile(server, script)
  const run = () => tiny.run(['run', '--port', '0'], { REDIS_SERVER: server })
  expect(await run()).toMatchObject({ code: 1, stderr: expect.stringContaining('EACCES') })
  await chmod(server, 0o755)
  const ran = await run()
  expect(ran.code).toBe(0)
  expect(ran.stderr).toContain('Using Redis 7.0.15 at ')
  expect(ran.stderr).toContain('NOT the patched build')
  const threads = async (REDIS_IO_THREADS: string, ...args: string[]) => {
    const env = { REDIS_SERVER: server, REDIS_IO_THREADS }
    const { stdout, stderr } = await tiny.run(['run', '--port', '0', ...args], env)
    return /(?<=--io-threads )\d+|REDIS_IO_THREADS is.*/.exec(stdout + stderr)?.[0]
  }
  expect(await threads('')).toMatch(/^[234]$/) // half of the cores
  for (const set of ['1', '64', '128']) expect(await threads(set)).toBe(set)
  expect(await threads('4', '--io-threads', '3')).toBe('3')
  for (const wrong of ['0', 'abc', '129', '-1', '2 3']) {
    expect(await threads(wrong)).toContain(`"${wrong}": it must be a whole number from 1 (off)`)
  }
})

test('rejects a REDIS_SERVER that is not a redis-server', async () => {
  const tiny = await tinyRedis()
  const refused = async (server: string) => {
    const { code, stderr } = await tiny.run(['run'], { REDIS_SERVER: server })
    expect(code).toBe(1)
    return stderr
  }
  expect(await refused('/nowhere/redis-server')).toContain('ENOENT')
  expect(await refused(tiny.directory)).toContain(`REDIS_SERVER=${tiny.directory} cannot be used`)
  expect(await refused('')).toContain('REDIS_SERVER= cannot be used: it is empty')
  expect(await refused('/bin/true')).toContain('--version is not that of a redis-server')
})

test('does not take over a Unix socket that is in use', async () => {
  const tiny = await tinyRedis()
  const socket = join(tiny.directory, 'redis.sock')
  const server = createServer().listen(socket)
  onTestFinished(() => void server.close())
  await tiny.run(['build', 'patched', ...tiny.fromArchive])
  const { code, stderr } = await tiny.run(['run', '--unixsocket', socket])
  expect(stderr).toContain(`A server is already listening on ${socket}`)
  expect(code).toBe(1)
})

test('users prints the ACL file of a server with the same secrets', async () => {
  const tiny = await tinyRedis()
  const secrets = join(tiny.directory, 'secrets')
  const acl = join(tiny.directory, 'users.acl')
  for (const isCluster of [false, true]) {
    const args = ['users', '--secrets', secrets, ...(isCluster ? ['--cluster'] : [])]
    const { code, stdout } = await tiny.run(args)
    expect(code).toBe(0)
    await writeUsers(secrets, acl, isCluster)
    expect(stdout).toBe(await readFile(acl, 'utf8'))
  }
})

test('without a source, says what to do, here and in the build of an image', async () => {
  const tiny = await tinyRedis()
  await writeFile(join(tiny.directory, 'apt-get'), '#!/bin/sh\nexit 1\n', { mode: 0o755 })
  const env = {
    PATH: `${tiny.directory}:${process.env.PATH}`,
    HTTPS_PROXY: 'http://127.0.0.1:1',
    https_proxy: 'http://127.0.0.1:1',
    NO_PROXY: '',
    no_proxy: '',
  }
  const hint = async (BUILDS_IMAGE: string) =>
    (await tiny.run(['build', 'patched'], { ...env, BUILDS_IMAGE })).stderr
  expect(await hint('')).toContain('npm run redis -- build --source redis-8.0.6.tar.gz')
  expect(await hint('1')).toContain(
    'REDIS_SOURCE=docker/redis-8.0.6.tar.gz docker compose build redis',
  )
})
