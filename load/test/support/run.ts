import { fileURLToPath } from 'node:url'
import { filesIn, processesOf } from '@onetrip/stack/testing/folders.ts'
import { type RunOptions, runProgram, type TestedProgram } from '@onetrip/stack/testing/programs.ts'
import { expect } from 'vitest'

/** The path of the program of `npm run load`. */
export const loadPath = fileURLToPath(new URL('../../src/cli.ts', import.meta.url))

/** Long timeouts, so that no request fails on a busy machine. */
export const longTimeouts = { REDIS_DEADLINE_MS: '60000', MAX_EVENT_LOOP_DELAY_MS: '0' }

/** Runs `npm run load`; see `runProgram`. */
export const runLoad = ({ env, ...options }: RunOptions): Promise<TestedProgram> =>
  runProgram(loadPath, { ...options, env: { ...longTimeouts, ...env } })

/** Expects that a command has left no processes, and no files in the folder of its state. */
export async function expectNothingLeft(state: string): Promise<void> {
  expect(await processesOf(state)).toEqual([])
  expect(await filesIn(state)).toEqual([])
}
