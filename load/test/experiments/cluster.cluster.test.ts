import { expect, test } from 'vitest'
import { runExperiment } from '../support/experiment.ts'

test('slot-move measures how long a key blocks both nodes', async () => {
  const args = ['--parts=slot-move', '--rounds=1', '--sessions=1000,200000']
  const { result } = await runExperiment('cluster', args)
  expect(result.samples).toHaveLength(4)
  for (const { case: one, values } of result.samples) {
    for (const name of ['migrateMs', 'restoreMs', 'sourceMs'])
      expect(values[name]).toBeGreaterThan(0)
    // A field has an id of 32 characters, and a user or a time.
    expect(values.megabytes).toBeGreaterThan(Number(one.sessions) * 40e-6)
    expect(values.megabytes).toBeLessThan(Number(one.sessions) * 70e-6)
  }
})

test('cluster measures the CPU time of a view by nodes, and without a cluster', async () => {
  const args = ['--rounds=1', '--duration=0.3', '--nodes=1,3', '--in-flight=1,16', '--clients=2']
  const { result } = await runExperiment('cluster', args)
  const cases = result.samples.map(({ case: { nodes, inFlight } }) => `${nodes} ${inFlight}`)
  expect(cases).toEqual(['0 16', '1 1', '1 16', '3 1', '3 16'])
  const of = (name: string) => result.samples[cases.indexOf(name)]?.values ?? {}
  // A single view is one batch, or two if its item is on another node than its session.
  // Views at the ends of the measurement count in part: on a busy machine, two of twenty.
  expect(of('1 1').batches).toBeCloseTo(1, 0)
  expect(of('3 1').batches).toBeGreaterThan(1.1)
  expect(of('3 1').batches).toBeLessThan(2.5)
  expect(Math.abs(Number(of('1 1').commands) - 5)).toBeLessThan(1)
  expect(of('1 16').batches).toBeLessThan(0.5)
  expect(of('3 16').busiestMicros).toBeLessThan(of('3 16').mainCpuMicros ?? 0)
})
