import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { filesIn, processesOf, temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { expect, test } from 'vitest'
import { runLoad } from './support/run.ts'

test.each(['documents', 'partitioned'])(
  'it trims, in the key layout %s, and tells what blocked Redis',
  async (layout) => {
    const state = await temporaryFolder()
    const json = join(await temporaryFolder(), 'retention.json')
    const args = [
      'retention',
      '--quick',
      '--sessions=3000',
      '--batch-sizes=100,500',
      '--json',
      json,
    ]
    const load = await runLoad({
      state,
      args: [...args, '--layout', layout],
      until: /All samples are in/,
    })
    expect(await load.exited).toEqual({ code: 0, signal: null })
    expect(load.output.join('\n')).toMatch(/^janitor, batches of 100 +3,00[01] /m)
    expect(await processesOf(state)).toEqual([])
    expect(await filesIn(state)).toEqual([])

    const { stages } = JSON.parse(await readFile(json, 'utf8'))
    expect(stages).toMatchObject([
      { name: 'no clean-up', removed: 0 },
      // The victim's session counts towards the limit once, and makes room for itself.
      { name: 'janitor, batches of 100', removed: 3_001 },
      { name: 'janitor, batches of 500', removed: 3_000 },
      { name: 'one command' },
      { name: 'sweep of what that left', removed: stages[3].removed },
    ])
    for (const { victim, seconds } of stages) {
      expect(victim.views).toBeGreaterThan(0)
      expect(victim.max).toBeGreaterThanOrEqual(victim.p50)
      expect(seconds).toBeGreaterThan(0)
    }
    expect(stages[1].steps).toBeGreaterThanOrEqual(30)
    expect(stages[2].steps).toBeGreaterThanOrEqual(6)
  },
)
