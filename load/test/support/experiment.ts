import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { filesIn, processesOf, temporaryFolder } from '@onetrip/stack/testing/places.ts'
import { run } from '@onetrip/stack/testing/programs.ts'
import { expect } from 'vitest'
import type { Result } from '../../src/experiment/result.ts'

/** Runs `npm run load -- NAME` to its end, and expects success and nothing left behind. */
export async function runExperiment(
  name: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<{ text: string; result: Result }> {
  const { text, json } = await runCommand([name, ...args], env)
  const result = JSON.parse(json)
  expect(result).toMatchObject({ format: 'onetrip-result/1', experiment: name })
  return { text, result }
}

async function runCommand(
  command: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<{ text: string; json: string }> {
  const state = await temporaryFolder()
  const json = join(await temporaryFolder(), 'result.json')
  const args = [...command, '--json', json]
  const load = await run('cli.ts', { state, args, env, until: /All samples are in/ })
  expect(await load.exited).toEqual({ code: 0, signal: null })
  expect(await processesOf(state)).toEqual([])
  expect(await filesIn(state)).toEqual([])
  return { text: load.output.join('\n'), json: await readFile(json, 'utf8') }
}

/** The same for `redis NAME`, of those that are not converted yet. */
export async function runOldExperiment<Sample>(
  name: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<{ text: string; result: Record<string, unknown> & { samples: readonly Sample[] } }> {
  const { text, json } = await runCommand(['redis', name, ...args], env)
  return { text, result: JSON.parse(json) }
}
