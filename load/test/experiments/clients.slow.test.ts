import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { expect, test } from 'vitest'
import { build, type Runtime } from '../../src/experiments/clients/builds.ts'
import { clientNames, runtimeOf } from '../../src/experiments/clients/programs.ts'
import { runExperiment } from '../support/experiment.ts'

const quick = ['--rounds=1', '--duration=0.2', '--callers=1,16']
const needing = (runtime: Runtime | null) =>
  clientNames.filter((name) => runtimeOf(name) === runtime)

async function expectAll(clients: readonly string[]): Promise<void> {
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

test('measures the clients for Node', async () => {
  await expectAll(needing(null))
})

// On a new machine, downloads and compilers take minutes.
const BUILD_MS = 600_000

test.for(['go', 'rust', 'bun'] as const)(
  'measures the clients for %s',
  { timeout: BUILD_MS },
  async (runtime, { signal, skip }) => {
    const versions = await build(runtime, signal).catch((error: Error) => skip(error.message))
    skip(versions === null, `${runtime} is missing`)
    expect(versions).toMatch(/\d+\.\d+/)
    await expectAll(needing(runtime))
  },
)

test('leaves out the clients whose language is missing, and says so', async () => {
  const { text, result } = await runExperiment(
    'clients',
    [...quick, '--clients=ioredis,rueidis,redis-rs,bun'],
    { PATH: await temporaryFolder() },
  )
  expect(text).toMatch(/^Go +not installed: rueidis left out$/m)
  expect(text).toMatch(/^Rust +not installed: redis-rs left out$/m)
  expect(text).toMatch(/^Bun +not installed: bun left out$/m)
  expect(new Set(result.samples.map(({ case: one }) => one.client))).toEqual(new Set(['ioredis']))
})
