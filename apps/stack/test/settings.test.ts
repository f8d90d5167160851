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
  return settingsOf(command, { ONETRIP_STATE: '/state', ...env })
}

test('defaults', async () => {
  expect(await start([])).toEqual(defaultSettings)
})

const foreign = { REDIS_URL: 'redis://me:secret@127.0.0.1:6379' }
const installed = { REDIS_SERVER: '/usr/bin/redis-server' }

/** Each has a data folder of its own. */
const dataFolders = [
  [['--redis-build', 'patched@0005'], {}, 'patched@0005'],
  [[], installed, 'installed'],
  [['--cluster', '--redis-port=7000'], {}, 'cluster-patched'],
  [['--cluster'], installed, 'cluster-installed'],
] as const

test.for([
  [['--no-race'], {}, { race: false }],
  [[], { RACE: 'off' }, { race: false }],
  [['--port', '5000'], {}, { port: 5000, naivePort: 4001 }],
  [[], foreign, { redis: { kind: 'foreign', url: foreign.REDIS_URL } }],
  ...dataFolders.map(([args, env, folder]) => [
    args,
    env,
    { redis: { directory: `/state/redis/data/${folder}` } },
  ]),
] as [string[], NodeJS.ProcessEnv, object][])('%j with %j: %j', async ([args, env, settings]) => {
  vi.stubEnv('PORT', '4000')
  vi.stubEnv('NAIVE_PORT', '4001')
  expect(await start([...args], env)).toMatchObject(settings)
})

const noEffect = 'has no effect: REDIS_URL (redis://127.0.0.1:6379)' // without the password

test.for([
  [[], { REDIS_PORT: '65536' }, /REDIS_PORT.*1 to 65535/],
  [[], { RACE: 'no' }, 'RACE is "no": it must be on or off.'],
  ...['', '0', '65536', '80.5', '0x50'].map((port) => [['--port', port], {}, /--port.*1 to 65535/]),
  ...['--transport=unix', '--redis-port=1', '--redis-build=stock', '--cluster'].map((option) => [
    [option],
    foreign,
    `${option.split('=')[0]} ${noEffect}`,
  ]),
  [[], { REDIS_URL: 'https://me:secret@example.org' }, /^REDIS_URL: (?!.*secret).*must begin with/],
  ...['mine', 'mine@0005', 'patched@5', 'patched@'].map((build) => [
    ['--redis-build', build],
    {},
    'patched, stock, baseline',
  ]),
  [['--cluster', '--transport=unix'], {}, "'--cluster' cannot be used with option '--transport"],
  [['--redis-build', 'stock'], installed, 'REDIS_SERVER'],
  [[], { ...installed, ...foreign }, 'both'],
] as [string[], NodeJS.ProcessEnv, string | RegExp][])(
  '%j with %j is rejected: %s',
  async ([args, env, message]) => {
    if (env.REDIS_PORT) vi.stubEnv('REDIS_PORT', env.REDIS_PORT)
    await expect(start(args, env)).rejects.toThrow(message)
  },
)
