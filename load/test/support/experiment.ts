import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { filesIn, processesOf, temporaryFolder } from '@onetrip/stack/testing/places.ts'
import { run } from '@onetrip/stack/testing/programs.ts'
import { expect } from 'vitest'

/** What an experiment printed, and what it wrote. */
export interface ExperimentRun<Sample> {
  text: string
  result: Record<string, unknown> & { samples: readonly Sample[] }
}

// Those that are not converted yet.
const old = ['short-connections', 'io-threads', 'info', 'slow-reader', 'pipelining', 'client']

/** Runs `npm run load -- NAME` to its end, and expects success and nothing left behind. */
export async function runExperiment<Sample>(
  name: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<ExperimentRun<Sample>> {
  const state = await temporaryFolder()
  const json = join(await temporaryFolder(), 'result.json')
  const isOld = old.includes(name)
  const all = [...(isOld ? ['redis'] : []), name, ...args, '--json', json]
  const load = await run('cli.ts', { state, args: all, env, until: /All samples are in/ })
  expect(await load.exited).toEqual({ code: 0, signal: null })
  expect(await processesOf(state)).toEqual([])
  expect(await filesIn(state)).toEqual([])
  const result = JSON.parse(await readFile(json, 'utf8'))
  const format = isOld ? 'onetrip-load-redis/1' : 'onetrip-result/1'
  expect(result).toMatchObject({ format, experiment: name })
  return { text: load.output.join('\n'), result }
}
