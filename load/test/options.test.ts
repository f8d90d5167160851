import { settingsOf, startCommand } from '@onetrip/stack/start/settings.ts'
import type { Command } from 'commander'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { variants } from '../src/contenders.ts'
import { httpCommand, httpOptions } from '../src/http/options.ts'

beforeEach(() => {
  for (const name of ['PORT', 'NAIVE_PORT', 'HOST', 'REDIS_PORT', 'REDIS_BUILD', 'TRANSPORT']) {
    vi.stubEnv(name, undefined)
  }
})
afterEach(() => vi.unstubAllEnvs())

function parsed(command: Command, args: readonly string[]): Command {
  return command
    .exitOverride()
    .configureOutput({ writeErr: () => {} })
    .parse(args, { from: 'user' })
}

const http = (...args: string[]) => httpOptions(parsed(httpCommand(), args))
const start = (args: string[], env: NodeJS.ProcessEnv = {}) =>
  settingsOf(parsed(startCommand(), args), { ONETRIP_STATE: '/state', ...env })

describe('http', () => {
  test('defaults', () => {
    expect(http()).toEqual({
      connections: 64,
      duration: 5,
      rounds: 5,
      variants: ['naive', 'batch'],
      generator: 'autocannon',
      warmup: 2,
      workload: 'realistic',
      sessions: 1000,
      items: 1000,
      reads: 0.2,
      seed: 17,
      report: true,
      threshold: 10,
    })
  })

  test('a preset yields to what is given, wherever it stands', () => {
    expect(http('--quick')).toMatchObject({ rounds: 5, duration: 2, warmup: 1 })
    expect(http('--rounds=2', '--quick')).toMatchObject({ rounds: 2, duration: 2 })
    expect(http('--full', '--rounds=5')).toMatchObject({ rounds: 5, variants, warmup: 3 })
    // The default, when it was given.
    expect(http('--quick', '--duration=5')).toMatchObject({ rounds: 5, duration: 5 })
    expect(() => http('--quick', '--full')).toThrow('--full')
  })

  test('there are at least as many sessions as connections, unless they are given', () => {
    expect(http('--connections=2000').sessions).toBe(2000)
    expect(http('--connections=2000', '--sessions=3').sessions).toBe(3)
    expect(http('--url=http://127.0.0.1:3000').sessions).toBe(64)
  })

  test("the documents' workload is one session and one item, and no reads", () => {
    const documents = { sessions: 1, items: 1, reads: 0 }
    expect(http('--workload=documents')).toMatchObject({ ...documents, connections: 64 })
    expect(http('--workload=documents', '--items=5')).toMatchObject({ ...documents, items: 5 })
  })

  test('a list keeps its order and may have spaces', () => {
    expect(http('--variants', 'pipeline, naive').variants).toEqual(['pipeline', 'naive'])
  })

  test('seconds may be fractions, counts may not', () => {
    expect(http('--duration', '0.5').duration).toBe(0.5)
    expect(() => http('--connections', '1.5')).toThrow(/whole number from 1 to 10000/)
  })

  test.for([
    ['--connections', '0'],
    ['--connections', '-1'],
    ['--connections', '1e3'],
    ['--connections', 'many'],
    ['--duration', '0'],
    ['--duration', 'Infinity'],
    ['--duration', ''],
    ['--rounds', '0'],
    ['--warmup', '-1'],
    ['--sessions', '0'],
    ['--seed', '0'],
    ['--variants', ''],
    ['--variants', 'naive,'],
    ['--variants', 'fast'],
    ['--generator', 'ab'],
    ['--variants', 'naive,naive'],
    ['--redis-build', 'mine'],
    ['--transport', 'pigeon'],
    ['--rate', '100'],
    ['--reads', '2'],
    ['--reads', '-0.1'],
    ['--reads', '20 %'],
    ['--workload', 'mine'],
    ['--workers', '0'],
  ])('%s %s is refused, by name', ([flag = '', value = '']) => {
    expect(() => http(flag, value)).toThrow(flag)
  })
})

describe('start', () => {
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

  test('the environment is asked, and the command line wins', () => {
    vi.stubEnv('PORT', '4000')
    vi.stubEnv('NAIVE_PORT', '4001')
    expect(start(['--port', '5000'])).toMatchObject({ pooledPort: 5000, naivePort: 4001 })
  })

  test('a bad variable is refused by its name', () => {
    vi.stubEnv('REDIS_PORT', '65536')
    expect(() => start([])).toThrow(/REDIS_PORT.*1 to 65535/)
  })

  test.for(['', '0', '-1', '65536', '80.5', 'http', '0x50'])('port "%s" is refused', (port) => {
    expect(() => start(['--port', port])).toThrow(/--port.*1 to 65535/)
  })

  test('REDIS_URL means no Redis of ours, and wishes about one contradict it', () => {
    const env = { REDIS_URL: 'redis://me:secret@127.0.0.1:6379' }
    expect(start([], env).redis).toEqual({ kind: 'foreign', url: env.REDIS_URL })
    expect(() => start(['--transport', 'unix'], env)).toThrow('--transport')
    const contradiction = () => start(['--redis-build', 'stock'], env)
    expect(contradiction).toThrow('redis://127.0.0.1:6379')
    expect(contradiction).not.toThrow('secret')
  })

  test('a REDIS_URL that is none is refused, without its password', () => {
    const wrong = () => start([], { REDIS_URL: 'https://me:secret@example.org' })
    expect(wrong).toThrow('https://example.org')
    expect(wrong).not.toThrow('secret')
  })

  test('an installed Redis keeps its data apart from that of the builds', () => {
    const env = { REDIS_SERVER: '/usr/bin/redis-server' }
    expect(start([], env).redis).toMatchObject({ directory: '/state/redis/data/installed' })
    expect(() => start(['--redis-build', 'stock'], env)).toThrow('REDIS_SERVER')
    expect(() => start([], { ...env, REDIS_URL: 'redis://127.0.0.1' })).toThrow('both')
  })
})
