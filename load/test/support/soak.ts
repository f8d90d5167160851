import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import type { Result } from '../../src/experiment/result.ts'
import { expectNothingLeft, runLoad } from './run.ts'

export const MINUTES = 60_000

/** Starts a soak of half a minute. Resolves when it injects the first fault. */
export async function startSoak(...more: string[]) {
  const state = await temporaryFolder()
  const json = join(await temporaryFolder(), 'result.json')
  const args = ['soak', '--minutes=0.5', '--rate=100', '--sessions=20', '--no-report', ...more]
  const load = await runLoad({
    state,
    until: /: (Redis|a node) killed/,
    args: [...args, '--json', json],
  })
  return {
    load,
    state,
    /** Waits for the end. Returns exit code, output and result. */
    async end() {
      const { code } = await load.exited
      await expectNothingLeft(state)
      const { samples, interrupted, software }: Result = JSON.parse(await readFile(json, 'utf8'))
      const { values = {}, details = {} } = samples[0] ?? {}
      return { code, text: load.output.join('\n'), interrupted, software, values, details }
    },
  }
}
