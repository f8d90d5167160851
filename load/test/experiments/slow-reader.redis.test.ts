import { expect, test } from 'vitest'
import { GROUP_REPLY_BYTES } from '../../src/experiments/slow-reader/client.ts'
import { runExperiment } from '../support/experiment.ts'

const MEGABYTE = 2 ** 20

test('slow-reader: replies pile up unless they are limited or read', async () => {
  const args = ['--rounds=1', '--megabytes=16', '--duration=0.2']
  const { text, result } = await runExperiment('slow-reader', args)
  const run = (client: string) => {
    const sample = result.samples.find((one) => one.case.client === client)
    if (!sample) throw new Error(`no run of ${client}`)
    return { ...sample, added: sample.values.addedMegabytes }
  }

  const unlimited = run('unlimited')
  expect(unlimited.added).toBeGreaterThan(5) // the rest is in the sockets' buffers
  expect(unlimited.values).toMatchObject({ closedAfter: null, refusedWrites: 0 })
  expect(Math.max(...(unlimited.series?.memoryMegabytes ?? []))).toBe(unlimited.added)

  for (const [client, closedBy] of [
    ['output-limit', 'client-output-buffer-limit'],
    ['client-memory', 'maxmemory-clients'],
  ] as const) {
    expect(run(client)).toMatchObject({ details: { closedBy } })
    expect(run(client).added).toBeLessThan(5)
    expect(run(client).values.closedAfter).toBeGreaterThan(0)
  }

  expect(run('maxmemory').added).toBeGreaterThan(5)
  expect(run('maxmemory').values.refusedWrites).toBeGreaterThan(0)

  const { commands, readMegabytes } = run('pipelines').values
  expect(readMegabytes).toBeCloseTo((Number(commands) / 4) * (GROUP_REPLY_BYTES / MEGABYTE), 3)
  expect(run('one-pipeline').values).toMatchObject({ commands, readMegabytes })
  expect(run('pipelines').added).toBeLessThan(4)

  const calls = Math.ceil((16 * MEGABYTE) / 4_000)
  expect(run('store').values).toMatchObject({ commands: 2 * calls, refusedCalls: 0 })
  expect(run('store').added).toBeLessThan(4)
  const atOnce = { commands: 2_000, refusedCalls: calls - 1_000 }
  expect(run('store-at-once').values).toMatchObject(atOnce)
  expect(run('store-at-once').added).toBeLessThan(4)

  expect(text).toMatch(/^not read, no limit .*[▁-█]/m)
  expect(text).toContain('client-output-buffer-limit closed the client after')
})
