import { execFile } from 'node:child_process'
import { devNull } from 'node:os'
import { promisify } from 'node:util'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { expect, test } from 'vitest'
import { clientNames, goFolder, isGo } from '../../src/experiments/clients/programs.ts'
import { runExperiment } from '../support/experiment.ts'

const quick = ['--rounds=1', '--duration=0.2', '--callers=1,16']
// Builds them before the clock of a test starts: on a new machine, downloads and compiler take minutes.
const noGo = await promisify(execFile)('go', ['build', '-o', devNull, '.'], { cwd: goFolder }).then(
  () => null,
  (error: Error) => `Go or its modules are missing: ${error.message}`,
)

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
  await expectAll(clientNames.filter((name) => !isGo(name)))
})

test('measures the clients for Go', async ({ skip }) => {
  skip(noGo !== null, noGo ?? '')
  await expectAll(clientNames.filter(isGo))
})

test('leaves the Go clients out without Go, and says so', async () => {
  const { text, result } = await runExperiment('clients', [...quick, '--clients=ioredis,rueidis'], {
    PATH: await temporaryFolder(),
  })
  expect(text).toMatch(/^Go +not installed: rueidis left out$/m)
  expect(new Set(result.samples.map(({ case: one }) => one.client))).toEqual(new Set(['ioredis']))
})
