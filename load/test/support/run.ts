import { fileURLToPath } from 'node:url'
import { type RunOptions, runProgram, type TestedProgram } from '@onetrip/stack/testing/programs.ts'

/** The path of the program of `npm run load`. */
export const loadPath = fileURLToPath(new URL('../../src/cli.ts', import.meta.url))

/** Runs `npm run load`; see `runProgram`. */
export const runLoad = (options: RunOptions): Promise<TestedProgram> =>
  runProgram(loadPath, options)
