import { CommanderError } from 'commander'
import { expect, test } from 'vitest'
import { completed } from '../../../src/cli.ts'
import { experimentCommand, optionsOf } from '../../../src/command.ts'
import { maxConnections } from '../../../src/drivers/redis/limits.ts'
import { experimentOf } from '../../../src/experiments/index.ts'
import type { RedisOptions } from '../../../src/experiments/redis/redis.ts'
import type { Case } from '../../../src/rounds/shape.ts'

/** The options and the cases of `npm run load -- redis PRESET ARGUMENTS`. */
function plan(preset: string, ...args: string[]) {
  const experiment = experimentOf(`redis ${preset}`)
  if (!experiment) throw new Error(`no preset ${preset}`)
  const interrupt = new AbortController().signal
  const command = experimentCommand(experiment, { commandLine: '', interrupt })
  command.exitOverride().configureOutput({ writeErr: () => {} })
  const { unknown } = command.parseOptions(args)
  if (unknown.length > 0) throw new CommanderError(1, 'unknown', unknown.join(' '))
  const options = optionsOf(experiment, command)
  return { options: options as RedisOptions, cases: experiment.cases(null, options) }
}

const texts = (cases: readonly Case[], ...factors: string[]) =>
  cases.map((one) => factors.map((name) => one[name] ?? '-').join(' '))

test('--shape replaces the loads of short', () => {
  const { cases } = plan('short', '--shape=rates,burst,get-8000', '--builds=stock')
  expect(texts(cases, 'load', 'tool')).toEqual([
    ...Array(12).fill('rates -'),
    'burst -',
    'get-8000 redis-benchmark',
    'get-8000 our generator',
  ])
})

test('--builds accepts builds with the first patches of the series', () => {
  const builds = (text: string) => plan('short', '--builds', text).options.builds
  expect(builds('stock, patched@0005,patched')).toEqual(['stock', 'patched@0005', 'patched'])
  expect(() => builds('stock,patched@5')).toThrow('Allowed choices are patched, stock, baseline.')
  expect(() => builds('patched@0005,patched@0005')).toThrow('only once')
})

test('--idle accepts numbers and "most", without duplicates', () => {
  const idle = (text: string) => plan('short', '--idle', text).options.idle
  expect(idle('0, most,1000')).toEqual([0, maxConnections() - 70, 1_000])
  expect(() => idle('banana')).toThrow('It must be a whole number from 0 to 1000000.')
  expect(() => idle('7,007')).toThrow('only once')
})

test('the former name of an experiment is refused with its command of today', () => {
  const args = ['short-connections', '--io-threads', '2', '--idle=0']
  expect(() => completed(args)).toThrow(
    'short-connections is part of another experiment now: npm run load -- redis short --threads 2 --idle=0',
  )
  expect(() => completed(['pipelining', '--clients=5', '--quick'])).toThrow(
    'redis pipelines --connections=5 --quick',
  )
  expect(() => completed(['pools', '--callers', '64', '--sizes=1,8'])).toThrow(
    'store --operation record-view --strategies batch,pipeline --concurrency 64 --pool-sizes=1,8',
  )
  expect(() => completed(['doctor', '--watch=5'])).toThrow('npm run doctor -- --watch=5')
  expect(completed(['redis', 'short'])).toEqual(['redis', 'short'])
})
