import type { Experiment } from '../../src/experiments/experiment.ts'
import { ELSEWHERE, FORMAT, type Result, type Sample } from '../../src/rounds/result.ts'
import type { Case } from '../../src/rounds/shape.ts'

/** A plausible result with these samples. */
export function resultOf(
  experiment: Pick<Experiment, 'name' | 'metrics'>,
  samples: readonly Sample[],
  change: Partial<Result> = {},
): Result {
  return {
    format: FORMAT,
    experiment: experiment.name,
    date: '2026-11-21T10:00:00.000Z',
    command: `npm run load -- ${experiment.name}`,
    git: { commit: 'f'.repeat(40), dirty: false },
    machine: { cpu: 'EPYC', cores: 2, memoryBytes: 2 ** 34, kernel: 'Linux 6', node: 'v26.10.0' },
    elsewhere: 0.02,
    network: 'shared',
    options: { rounds: 5, duration: 5, connections: 64, seed: 17 },
    load: { 'way to Redis': 'tcp' },
    software: { Redis: '8.0.6 patched-1', Generator: 'autocannon 9.0.0' },
    interrupted: false,
    metrics: Object.fromEntries(experiment.metrics.map(({ name, label }) => [name, label])),
    samples,
    ...change,
  }
}

/** Samples of a case. @param values a list of values per metric, one for each round. */
export function runsOf(
  one: Case,
  values: Readonly<Record<string, readonly (number | null)[]>>,
  more: Partial<Sample> = {},
): Sample[] {
  const rounds = Math.max(...Object.values(values).map(({ length }) => length))
  return Array.from({ length: rounds }, (_, index) => ({
    case: one,
    round: index + 1,
    ...more,
    values: {
      [ELSEWHERE]: 0.02,
      ...Object.fromEntries(
        Object.entries(values).map(([name, list]) => [name, list[index] ?? null]),
      ),
      ...more.values,
    },
  }))
}

/** Samples of variants over HTTP with these requests/s, and plausible values of all other metrics. */
export function httpSamples(
  rates: Readonly<Record<string, readonly number[]>>,
  more: (variant: string) => Partial<Sample> = () => ({}),
): Sample[] {
  return Object.entries(rates).flatMap(([variant, list]) => {
    const naive = variant === 'naive'
    const each = (value: number) => list.map(() => value)
    const values = {
      requestsPerSecond: list,
      p50: each(3),
      p75: each(4),
      p90: each(5),
      p95: each(7),
      p99: each(naive ? 186.4 : 19.5),
      p999: each(200),
      max: each(210),
      connections: each(naive ? 1 : 0),
      commands: each(naive ? 9 : 5),
      roundTrips: each(naive ? 5 : 1),
      generatorCpuMicros: each(25.4),
      apiCpuMicros: each(naive ? 390 : 61.2),
      redisCpuMicros: each(naive ? 282 : 18.31),
      generatorBusy: each(0.6),
    }
    return runsOf({ variant }, values, more(variant))
  })
}
