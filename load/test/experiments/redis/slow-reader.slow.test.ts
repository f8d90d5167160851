import { expect, test } from 'vitest'
import { runExperiment } from '../../support/experiment.ts'

test('slow-reader: unread replies use memory unless a limit is set', async () => {
  const args = ['--rounds=1', '--megabytes=16', '--duration=0.2']
  const { result } = await runExperiment('redis slow-reader', args)
  const run = (client: string) => {
    const sample = result.samples.find((one) => one.case.client === client)
    if (!sample) throw new Error(`no run of ${client}`)
    return { ...sample, added: sample.values.addedMegabytes }
  }

  const unlimited = run('unlimited')
  expect(unlimited.added).toBeGreaterThan(5) // socket buffers have the rest
  expect(unlimited.values).toMatchObject({ closedAfter: null, refusedWrites: 0 })

  for (const client of ['output-limit', 'client-memory']) {
    expect(run(client).added).toBeLessThan(5)
    expect(run(client).values.closedAfter).toBeGreaterThan(0)
    expect(run(client).values.refusedWrites).toBe(0)
  }

  expect(run('maxmemory').added).toBeGreaterThan(5)
  expect(run('maxmemory').values.refusedWrites).toBeGreaterThan(0)

  expect(run('one-pipeline').values.readMegabytes).toBeCloseTo(16, 1)
  expect(run('pipelines').values.readMegabytes).toBeCloseTo(16, 1)
  expect(run('pipelines').added).toBeLessThan(4)

  const calls = Math.ceil((16 * 2 ** 20) / 4_000)
  expect(run('store').values).toMatchObject({ refusedCalls: 0 })
  expect(run('store').values.readMegabytes).toBeCloseTo(16, 1)
  expect(run('store').added).toBeLessThan(4)
  expect(run('store-at-once').values).toMatchObject({ refusedCalls: calls - 1_000 })
  expect(run('store-at-once').added).toBeLessThan(4)
})
