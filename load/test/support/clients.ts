import { expect } from 'vitest'
import type { Runtime } from '../../src/experiments/clients/builds.ts'
import { clientNames, runtimeOf } from '../../src/experiments/clients/programs.ts'
import { runExperiment } from './experiment.ts'

export const quick = ['--rounds=1', '--duration=0.2', '--callers=1,16']

/** Runs the clients of a language, or those of Node, and expects five commands per view and a value of each metric. */
export async function expectClients(runtime: Runtime | null): Promise<void> {
  const clients = clientNames.filter((name) => runtimeOf(name) === runtime)
  const { result } = await runExperiment('clients', [...quick, `--clients=${clients}`])
  expect(result.samples).toHaveLength(2 * clients.length)
  for (const { case: one, values } of result.samples) {
    expect(Math.round(values.commands ?? 0), `${one.client}`).toBe(5)
    for (const name of ['viewsPerSecond', 'clientCpuMicros', 'cpuMicros', 'reads']) {
      expect(values[name], `${one.client}: ${name}`).toBeGreaterThan(0)
    }
    expect(values.p99).toBeGreaterThanOrEqual(values.p50 ?? Number.NaN)
  }
}
