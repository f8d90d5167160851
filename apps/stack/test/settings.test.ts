import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { settingsOf, startCommand } from '../src/start/settings.ts'
import { defaultSettings } from './support/settings.ts'

beforeEach(() => {
  for (const name of ['PORT', 'NAIVE_PORT', 'HOST', 'REDIS_PORT', 'REDIS_BUILD', 'TRANSPORT']) {
    vi.stubEnv(name, undefined)
  }
})
afterEach(() => void vi.unstubAllEnvs())

async function start(args: string[], env: NodeJS.ProcessEnv = {}) {
  const command = startCommand()
    .exitOverride()
    .configureOutput({ writeErr: () => {} })
    .parse(args, { from: 'user' })
  return await settingsOf(command, { ONETRIP_STATE: '/state', ...env })
}

test('defaults', async () => {
  expect(await start([])).toEqual(defaultSettings)
})

test('the race can be turned off', async () => {
  expect(await start(['--no-race'])).toMatchObject({ race: false })
  expect(await start([], { RACE: 'off' })).toMatchObject({ race: false })
  await expect(start([], { RACE: 'no' })).rejects.toThrow('RACE is "no": it must be on or off.')
})

test('the command line overrides the environment', async () => {
  vi.stubEnv('PORT', '4000')
  vi.stubEnv('NAIVE_PORT', '4001')
  expect(await start(['--port', '5000'])).toMatchObject({ port: 5000, naivePort: 4001 })
})

test('the error for an invalid variable names it', async () => {
  vi.stubEnv('REDIS_PORT', '65536')
  await expect(start([])).rejects.toThrow(/REDIS_PORT.*1 to 65535/)
})

test.for(['', '0', '65536', '80.5', '0x50'])('rejects port "%s"', async (port) => {
  await expect(start(['--port', port])).rejects.toThrow(/--port.*1 to 65535/)
})

test('REDIS_URL selects a foreign Redis; options for our own Redis are rejected', async () => {
  const env = { REDIS_URL: 'redis://me:secret@127.0.0.1:6379' }
  expect((await start([], env)).redis).toEqual({ kind: 'foreign', url: env.REDIS_URL })
  for (const option of ['--transport=unix', '--redis-port=1', '--redis-build=stock']) {
    const reason = `${option.split('=')[0]} has no effect: REDIS_URL (redis://127.0.0.1:6379)`
    await expect(start([option], env)).rejects.toThrow(reason)
  }
})

test('rejects an invalid REDIS_URL without printing its password', async () => {
  const wrong = start([], { REDIS_URL: 'https://me:secret@example.org' })
  await expect(wrong).rejects.toThrow(/^"https:\/\/example.org"/)
})

test('a build can have only the first patches', async () => {
  const { redis } = await start(['--redis-build', 'patched@0005'])
  expect(redis).toMatchObject({
    build: 'patched@0005',
    directory: '/state/redis/data/patched@0005',
  })
  for (const build of ['mine', 'mine@0005', 'patched@5', 'patched@']) {
    await expect(start(['--redis-build', build])).rejects.toThrow('patched, stock, baseline')
  }
})

test('--cluster starts a cluster with a separate data folder', async () => {
  expect((await start(['--cluster', '--redis-port=7000'])).redis).toEqual({
    kind: 'cluster',
    build: 'patched',
    port: 7000,
    secrets: '/state/redis/secrets',
    directory: '/state/redis/data/cluster-patched',
  })
  const env = { REDIS_SERVER: '/usr/bin/redis-server' }
  expect((await start(['--cluster'], env)).redis).toMatchObject({
    directory: '/state/redis/data/cluster-installed',
  })
})

test.for([
  [{ REDIS_URL: 'redis://127.0.0.1:6379' }, [], '--cluster has no effect: REDIS_URL (redis://'],
  [{}, ['--transport=unix'], "'--cluster' cannot be used with option '--transport"],
] as const)('with %j and %j, --cluster is rejected', async ([env, args, message]) => {
  await expect(start(['--cluster', ...args], env)).rejects.toThrow(message)
})

test('an installed Redis has a separate data folder', async () => {
  const env = { REDIS_SERVER: '/usr/bin/redis-server' }
  expect((await start([], env)).redis).toMatchObject({ directory: '/state/redis/data/installed' })
  await expect(start(['--redis-build', 'stock'], env)).rejects.toThrow('REDIS_SERVER')
  await expect(start([], { ...env, REDIS_URL: 'redis://127.0.0.1' })).rejects.toThrow('both')
})
