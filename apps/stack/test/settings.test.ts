import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { settingsOf, startCommand } from '../src/start/settings.ts'

beforeEach(() => {
  for (const name of ['PORT', 'NAIVE_PORT', 'HOST', 'REDIS_PORT', 'REDIS_BUILD', 'TRANSPORT']) {
    vi.stubEnv(name, undefined)
  }
})
afterEach(() => void vi.unstubAllEnvs())

function start(args: string[], env: NodeJS.ProcessEnv = {}) {
  const command = startCommand()
    .exitOverride()
    .configureOutput({ writeErr: () => {} })
    .parse(args, { from: 'user' })
  return settingsOf(command, { ONETRIP_STATE: '/state', ...env })
}

test('defaults', () => {
  expect(start([])).toEqual({
    host: '127.0.0.1',
    pooledPort: 3000,
    naivePort: 3001,
    installed: null,
    redis: {
      kind: 'own',
      build: 'patched',
      transport: 'tcp',
      port: 6390,
      run: '/state/run',
      secrets: '/state/redis/secrets',
      directory: '/state/redis/data/patched',
    },
  })
})

test('the command line wins over the environment', () => {
  vi.stubEnv('PORT', '4000')
  vi.stubEnv('NAIVE_PORT', '4001')
  expect(start(['--port', '5000'])).toMatchObject({ pooledPort: 5000, naivePort: 4001 })
})

test('rejects a bad variable by its name', () => {
  vi.stubEnv('REDIS_PORT', '65536')
  expect(() => start([])).toThrow(/REDIS_PORT.*1 to 65535/)
})

test.for(['', '0', '-1', '65536', '80.5', 'http', '0x50'])('rejects port "%s"', (port) => {
  expect(() => start(['--port', port])).toThrow(/--port.*1 to 65535/)
})

test('REDIS_URL selects a foreign Redis, and options about our own are rejected', () => {
  const env = { REDIS_URL: 'redis://me:secret@127.0.0.1:6379' }
  expect(start([], env).redis).toEqual({ kind: 'foreign', url: env.REDIS_URL })
  expect(() => start(['--transport', 'unix'], env)).toThrow('--transport')
  const contradiction = () => start(['--redis-build', 'stock'], env)
  expect(contradiction).toThrow('redis://127.0.0.1:6379')
  expect(contradiction).not.toThrow('secret')
})

test('rejects an invalid REDIS_URL without printing its password', () => {
  const wrong = () => start([], { REDIS_URL: 'https://me:secret@example.org' })
  expect(wrong).toThrow('https://example.org')
  expect(wrong).not.toThrow('secret')
})

test('an installed Redis has a data folder of its own', () => {
  const env = { REDIS_SERVER: '/usr/bin/redis-server' }
  expect(start([], env).redis).toMatchObject({ directory: '/state/redis/data/installed' })
  expect(() => start(['--redis-build', 'stock'], env)).toThrow('REDIS_SERVER')
  expect(() => start([], { ...env, REDIS_URL: 'redis://127.0.0.1' })).toThrow('both')
})
