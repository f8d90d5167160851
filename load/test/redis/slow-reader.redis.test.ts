import { expect, test } from 'vitest'
import { GROUP_REPLY_BYTES } from '../../src/redis/experiments/slow-reader-client.ts'
import type { Sample } from '../../src/redis/experiments/slow-reader-report.ts'
import { runOldExperiment as runExperiment } from '../support/experiment.ts'

const MEGABYTE = 2 ** 20

test('slow-reader: replies pile up unless they are limited or read', async () => {
  const args = ['--rounds=1', '--megabytes=16', '--duration=0.2']
  type Named = Sample & { id: string; settings: Record<string, string> }
  const { text, result } = await runExperiment<Named>('slow-reader', args)
  const run = (id: string) => {
    const sample = result.samples.find((one) => one.id === id)
    if (!sample) throw new Error(`no run of ${id}`)
    return { ...sample, added: (sample.peakBytes - sample.baseBytes) / MEGABYTE }
  }

  const unlimited = run('unlimited')
  expect(unlimited.added).toBeGreaterThan(5) // the rest is in the sockets' buffers
  expect(unlimited).toMatchObject({ closedAfterMs: null, otherWrites: { refused: 0 } })

  expect(run('output-limit')).toMatchObject({ closedByOutputLimit: 1, closedByClientMemory: 0 })
  expect(run('output-limit').settings).toMatchObject({
    'client-output-buffer-limit': 'normal 4mb 0 0',
  })
  expect(run('client-memory')).toMatchObject({ closedByOutputLimit: 0, closedByClientMemory: 1 })
  for (const id of ['output-limit', 'client-memory']) {
    expect(run(id).added).toBeLessThan(5)
    expect(run(id).closedAfterMs).toBeGreaterThan(0)
  }

  expect(run('maxmemory').added).toBeGreaterThan(5)
  expect(run('maxmemory').otherWrites.refused).toBeGreaterThan(0)

  const { commands, bytesRead } = run('pipelines').result
  expect(bytesRead).toBe((commands / 4) * GROUP_REPLY_BYTES)
  expect(run('one-pipeline').result).toMatchObject({ commands, bytesRead })
  expect(run('pipelines').added).toBeLessThan(4)

  const calls = Math.ceil((16 * MEGABYTE) / 4_000)
  expect(run('store').result).toMatchObject({ commands: 2 * calls, refused: 0 })
  expect(run('store').added).toBeLessThan(4)
  expect(run('store-at-once').result).toMatchObject({ commands: 2_000, refused: calls - 1_000 })
  expect(run('store-at-once').added).toBeLessThan(4)

  expect(text).toMatch(/^not read, no limit .*[▁-█]/m)
  expect(text).toContain('client-output-buffer-limit closed the client after')
})
