import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryFolder } from '@onetrip/stack/testing/folders.ts'
import { expect } from 'vitest'
import type { Result } from '../../src/rounds/result.ts'
import { expectNothingLeft, runLoad } from './run.ts'

/** The output and the result of an experiment. */
export interface ExperimentRun {
  text: string
  result: Result
}

/** Runs an experiment. Expects success, and that no processes and files are left. */
export async function runExperiment(
  name: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<ExperimentRun> {
  const state = await temporaryFolder()
  const json = join(await temporaryFolder(), 'result.json')
  const all = [...name.split(' '), ...args, '--json', json]
  const load = await runLoad({ state, args: all, env, until: /All samples are in/ })
  expect(await load.exited).toEqual({ code: 0, signal: null })
  await expectNothingLeft(state)
  const result = JSON.parse(await readFile(json, 'utf8'))
  expect(result).toMatchObject({ format: 'onetrip-result/1', experiment: name })
  return { text: load.output.join('\n'), result }
}
