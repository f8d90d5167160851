import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { filesIn, processesOf, temporaryFolder } from '@onetrip/stack/testing/places.ts'
import { run } from '@onetrip/stack/testing/programs.ts'
import { expect } from 'vitest'
import { experiments } from '../../src/experiments.ts'

/** What an experiment printed, and what it wrote. */
export interface ExperimentRun<Sample> {
  text: string
  result: Record<string, unknown> & { samples: readonly Sample[] }
}

/** Runs an experiment to its end, and expects success and nothing left behind. */
export async function runExperiment<Sample>(
  name: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<ExperimentRun<Sample>> {
  const isNew = experiments.some((one) => one.name === name)
  const state = await temporaryFolder()
  const json = join(await temporaryFolder(), 'result.json')
  const all = [...(isNew ? [] : ['redis']), name, ...args, '--json', json]
  const load = await run('cli.ts', { state, args: all, env, until: /All samples are in/ })
  expect(await load.exited).toEqual({ code: 0, signal: null })
  expect(await processesOf(state)).toEqual([])
  expect(await filesIn(state)).toEqual([])
  const result = JSON.parse(await readFile(json, 'utf8'))
  const format = isNew ? 'onetrip-result/1' : 'onetrip-load-redis/1'
  expect(result).toMatchObject({ format, experiment: name })
  return { text: load.output.join('\n'), result }
}
