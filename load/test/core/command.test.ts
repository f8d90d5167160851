import type { Command } from 'commander'
import { describe, expect, test } from 'vitest'
import { experimentCommand, optionsOf } from '../../src/command.ts'
import type { Experiment } from '../../src/experiments/experiment.ts'
import { http as httpExperiment } from '../../src/experiments/http/http.ts'
import { experiments } from '../../src/experiments/index.ts'
import { variants } from '../../src/variants.ts'

/** The command of an experiment with an empty action. Errors are thrown instead of printed. */
function commandOf(experiment: Experiment): Command {
  const command = experimentCommand(experiment, {
    commandLine: '',
    interrupt: new AbortController().signal,
  })
  return command
    .exitOverride()
    .configureOutput({ writeErr: () => {} })
    .action(() => {})
}

const optionNames = (experiment: Experiment) =>
  commandOf(experiment).options.map((option) => option.attributeName())

test.each(experiments)('$name: presets, subject and progress name what exists', (experiment) => {
  const names = optionNames(experiment)
  expect(names).toEqual(expect.arrayContaining(['rounds', 'quick', 'json']))
  for (const preset of [experiment.quick, experiment.full ?? {}]) {
    expect(names).toEqual(expect.arrayContaining(Object.keys(preset)))
  }
  expect(new Set(names).size).toBe(names.length)
  expect(experiment.factors.map(({ name }) => name)).toContain(experiment.subject)
  const metrics = experiment.metrics.map(({ name }) => name)
  expect(new Set(metrics).size).toBe(metrics.length)
  expect(metrics).toEqual(expect.arrayContaining([...experiment.progress]))
})

const http = (...args: string[]) =>
  optionsOf(
    httpExperiment,
    commandOf(httpExperiment).parse(args, { from: 'user' }),
  ) as unknown as Record<string, unknown>

describe('http', () => {
  test('a workload has its own defaults', () => {
    expect(http()).toMatchObject({ workload: 'realistic', items: 1_000, reads: 0.2 })
    const articles = { sessions: 1, items: 5, reads: 0, connections: [64] }
    expect(http('--workload=articles', '--items=5')).toMatchObject(articles)
    for (const gone of ['sale', 'feed', 'unique', 'risk']) {
      expect(() => http(`--workload=${gone}`)).toThrow('realistic, articles')
    }
  })

  test('given options override presets, in any order', () => {
    expect(http('--quick')).toMatchObject({ rounds: 5, duration: 2, warmup: 1 })
    expect(http('--rounds=2', '--quick')).toMatchObject({ rounds: 2, duration: 2 })
    expect(http('--full', '--rounds=5')).toMatchObject({ rounds: 5, variants, warmup: 3 })
    // Also if the given value is the default.
    expect(http('--quick', '--duration=5')).toMatchObject({ rounds: 5, duration: 5 })
    expect(() => http('--quick', '--full')).toThrow('--full')
  })

  test('--links names ways to a Redis that it starts', () => {
    const distant = { roundTripMs: 1, rate: '1Gb/s' }
    expect(http('--links=loopback,1ms@1Gb/s').links).toEqual([
      { name: 'loopback', distant: null },
      { name: '1ms@1Gb/s', distant },
    ])
    const url = '--url=http://127.0.0.1:3000'
    expect(() => http('--links=loopback', url)).toThrow(/--links .* cannot be used with .*--url/)
  })

  test.for([
    ['--duration', '0'],
    ['--links', 'far'],
    ['--variants', 'fast'],
    ['--rate', '100'],
  ])('rejects %s %s with the name of the option', ([flag = '', value = '']) => {
    expect(() => http(flag, value)).toThrow(flag)
  })
})
