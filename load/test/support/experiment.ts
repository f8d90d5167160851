import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { filesIn, processesOf, temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { expect } from 'vitest'
import { runLoad } from './run.ts'

/** What an experiment printed, and what it wrote. */
export interface ExperimentRun<Sample> {
  text: string
  result: Record<string, unknown> & { samples: readonly Sample[] }
}

/** Runs `npm run load -- redis NAME` to its end, and expects success and nothing left behind. */
export async function runExperiment<Sample>(
  name: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<ExperimentRun<Sample>> {
  const state = await temporaryFolder()
  const json = join(await temporaryFolder(), 'result.json')
  const all = ['redis', name, ...args, '--json', json]
  const load = await runLoad({ state, args: all, env, until: /All samples are in/ })
  expect(await load.exited).toEqual({ code: 0, signal: null })
  expect(await processesOf(state)).toEqual([])
  expect(await filesIn(state)).toEqual([])
  const result = JSON.parse(await readFile(json, 'utf8'))
  expect(result).toMatchObject({ format: 'onetrip-load-redis/1', experiment: name })
  return { text: load.output.join('\n'), result }
}
