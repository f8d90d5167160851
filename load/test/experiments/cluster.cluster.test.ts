import { expect, test } from 'vitest'
import { runExperiment } from '../support/experiment.ts'

test('slot-move: larger keys block both nodes for longer', async () => {
  const args = ['--parts=slot-move', '--rounds=1', '--sessions=1000,200000']
  const { result } = await runExperiment('cluster', args)
  expect(result.samples).toHaveLength(4)
  for (const key of ['login (hash)', 'recent (sorted set)']) {
    const [small, large] = result.samples
      .filter(({ case: one }) => one.key === key)
      .map(({ values }) => values)
    expect(large?.migrateMs).toBeGreaterThan(small?.migrateMs ?? Number.NaN)
    // The source waits for the target.
    expect(large?.migrateMs).toBeGreaterThan(large?.restoreMs ?? Number.NaN)
    expect(large?.sourceMs).toBeGreaterThan(0.2 * Number(large?.migrateMs))
    // A field has an id of 32 characters, and a user or a time.
    expect(large?.megabytes).toBeGreaterThan(200_000 * 40e-6)
    expect(large?.megabytes).toBeLessThan(200_000 * 60e-6)
  }
})

test('slot-move: a payload above the limit of the target is an error without values', async () => {
  const args = ['--parts=slot-move', '--rounds=1', '--sessions=1000,200000', '--query-buffer=4mb']
  const { result } = await runExperiment('cluster', args)
  const [small, large] = result.samples.filter(({ case: { key } }) => key === 'login (hash)')
  expect(small?.errors).toBeUndefined()
  expect(large).toMatchObject({ errors: { refused: 1 } })
  expect(large?.values.sourceMs).toBeUndefined()
})

test('cluster measures the CPU time of a view by nodes, and without a cluster', async () => {
  const args = ['--rounds=1', '--duration=0.3', '--nodes=1,3', '--in-flight=1,16', '--clients=2']
  const { result } = await runExperiment('cluster', args)
  const cases = result.samples.map(({ case: { nodes, inFlight } }) => `${nodes} ${inFlight}`)
  expect(cases).toEqual(['0 16', '1 1', '1 16', '3 1', '3 16'])
  const of = (name: string) => result.samples[cases.indexOf(name)]?.values ?? {}
  // A single view is one batch, or two if its item is on another node than its session.
  expect(of('1 1').batches).toBeCloseTo(1, 1)
  expect(of('3 1').batches).toBeGreaterThan(1.4)
  expect(of('3 1').batches).toBeLessThan(1.9)
  expect(of('1 1').commands).toBeCloseTo(5, 0)
  expect(of('1 16').batches).toBeLessThan(0.5)
  expect(of('3 16').busiestMicros).toBeLessThan(of('3 16').mainCpuMicros ?? 0)
})
