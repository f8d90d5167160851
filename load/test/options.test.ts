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
